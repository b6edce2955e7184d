# shellcheck shell=bash disable=SC2154 # lib.sh sets them
# Installs what is missing of the servers. Sourced by up and tests/run.

# The packages a machine lacks, by the programs they bring.
missing_packages() {
    local java=0
    java=$(java -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' || true)
    ((${java:-0} >= 17)) || echo openjdk-17-jre-headless
    command -v mvn >/dev/null || [[ -f $kafka_jars/complete ]] || echo maven
    { command -v mariadbd && command -v mariadb-install-db; } >/dev/null || echo mariadb-server-core
    command -v mariadb >/dev/null || echo mariadb-client
    [[ -n $(postgres_bin) ]] || echo postgresql
    command -v setpriv >/dev/null || echo util-linux
    # Counts instructions, for tests/instructions.
    command -v valgrind >/dev/null || echo valgrind
}

# Debian's server packages start a server on the default port. A policy of "no" (101) keeps invoke-rc.d from that; where
# the machine has a policy of its own, containers mostly, it says the same.
apt_install() {
    command -v apt-get >/dev/null || die "install these by hand, there is no apt-get here: $*"
    say "installing $*"
    (
        policy=/usr/sbin/policy-rc.d
        if [[ ! -e $policy ]]; then
            trap 'as_root rm -f "$policy"' EXIT
            printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
            as_root chmod +x "$policy"
        fi
        as_root apt-get -q update &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends "$@"
    ) </dev/null >>"$state/install.log" 2>&1 || {
        tail -n 30 "$state/install.log" >&2
        die "apt-get could not install $*"
    }
    # Nor should a server come up when the machine boots next. MariaDB's core package has no service at all.
    if [[ " $* " == *" postgresql "* ]] && command -v systemctl >/dev/null; then
        as_root systemctl disable postgresql >/dev/null 2>&1 || true
    fi
}

install_packages() {
    local packages
    mapfile -t packages < <(missing_packages)
    if ((${#packages[@]} > 0)); then apt_install "${packages[@]}"; fi
}

# The jars come one by one through Maven; the mark tells a complete set of this very pom.
install_kafka() {
    local pom=$here/kafka/pom.xml
    if cmp -s "$pom" "$kafka_jars/complete"; then return; fi
    say "fetching Kafka's jars"
    rm -rf "$kafka_jars"
    mvn -q -B -f "$pom" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$kafka_jars" </dev/null >>"$state/install.log" 2>&1 || {
        tail -n 30 "$state/install.log" >&2
        die "maven could not fetch Kafka's jars"
    }
    cp "$pom" "$kafka_jars/complete"
}
