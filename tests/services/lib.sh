# shellcheck shell=bash disable=SC2034 # used by those who source this
# What the scripts of this folder share. Sourced, never run.
#
# A service is a file NAME.sh with these functions; ctl sources one of them:
#   NAME_ports    prints the ports it will listen on
#   NAME_prepare  makes the data directory if there is none yet
#   NAME_launch   replaces the (sub)shell by the server, in the foreground
#   NAME_answers  succeeds if the server does real work for a client
#   NAME_stop_signal  prints the signal of an orderly shutdown

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

SERVICES=(kafka mariadb postgres)
HOST=127.0.0.1
FLOW_USER=flow
FLOW_PASSWORD=flow-secret
FLOW_DATABASE=flow

# `env` exports the absolute path: a test runs in its crate's folder, where a relative target directory would be
# another.
state=${FLOW_TEST_SERVICES_STATE:-${CARGO_TARGET_DIR:-$root/target}/services}
[[ $state == /* ]] || state=$PWD/$state
kafka_jars=$state/kafka-jars

# Other work may keep every core busy, so only a hang should ever reach this.
WAIT_SECONDS=${FLOW_TEST_SERVICES_WAIT:-180}

say() { printf 'services: %s\n' "$*" >&2; }
die() {
    say "error: $*"
    exit 1
}

as_root() {
    if ((EUID == 0)); then
        "$@"
    else
        command -v sudo >/dev/null || die "not root and no sudo: cannot run $*"
        sudo "$@"
    fi
}

# The database servers refuse to run as root. Anyone else runs them under their own account.
as_user() {
    local user=$1
    shift
    cd /
    if ((EUID == 0)); then
        exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups --reset-env "$@"
    else
        exec "$@"
    fi
}

# --- data -----------------------------------------------------------------------------------------------------------

# The servers' accounts cannot enter a checkout below a private home directory, and a path in a checkout may be too long
# for a Unix socket (107 bytes). So their data is in /var/tmp, named after the state directory it belongs to.
data_root=/var/tmp/flow-services-$EUID-$(printf %s "$state" | cksum | cut -d' ' -f1)

make_state() {
    mkdir -p "$state"
    [[ -d $data_root ]] || mkdir -m 0711 "$data_root"
    # Anyone may make a directory of that name before us.
    [[ -O $data_root && ! -L $data_root ]] || die "$data_root belongs to someone else"
    ln -sfn "$data_root" "$state/data"
}

# new_data NAME USER: an empty directory to fill, then put in place by keep_data, so that a half-made one is never used.
new_data() {
    rm -rf "${data_root:?}/$1.new"
    mkdir -m 0700 "$data_root/$1.new"
    if ((EUID == 0)); then chown "$2:" "$data_root/$1.new"; fi
}
keep_data() { mv "$data_root/$1.new" "$data_root/$1"; }

# --- ports ----------------------------------------------------------------------------------------------------------

# port_of SERVICE NAME DEFAULT: a running service keeps the port it was started with, whatever the environment says now;
# one that comes back finds it again without being told.
port_of() {
    local recorded=$state/$2.port variable=${2^^}
    variable=FLOW_TEST_${variable//-/_}_PORT
    if [[ -n ${!variable:-} ]] && ! running_pid "$1" >/dev/null; then
        echo "${!variable}"
    elif [[ -s $recorded ]]; then
        cat "$recorded"
    else
        echo "$3"
    fi
}

# The defaults lie below the range from which systems take the ports of outgoing connections.
kafka_port() { port_of kafka kafka 21992; }
kafka_controller_port() { port_of kafka kafka-controller 21993; }
mariadb_port() { port_of mariadb mariadb 21936; }
postgres_port() { port_of postgres postgres 21954; }

port_is_open() { (exec 3<>"/dev/tcp/$HOST/$1") 2>/dev/null; }

refuse_taken_port() {
    port_is_open "$2" || return 0
    say "error: port $2, meant for $1, is taken by something else:"
    if command -v ss >/dev/null; then ss -Hltnp "sport = :$2" >&2; fi
    die "stop it, or set FLOW_TEST_${1^^}_PORT (kafka also: FLOW_TEST_KAFKA_CONTROLLER_PORT)"
}

# --- processes ------------------------------------------------------------------------------------------------------

# When a process started, in ticks since boot; nothing if it is gone or a mere zombie. The first thread of a killed
# process may be a zombie while others still hold its ports and files, so the number of threads counts as well.
# The command's name in front, in parentheses, may itself hold blanks and parentheses.
start_time() {
    local stat fields
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    read -ra fields <<<"${stat##*) }"
    if [[ ${fields[0]} != Z ]] || ((fields[17] > 1)); then echo "${fields[19]}"; fi
}

# The pid of the service if it runs. Its start time tells it from a stranger that got its number later.
running_pid() {
    local pid started
    read -r pid started 2>/dev/null <"$state/$1.pid" || return 1
    [[ -n $started && $(start_time "$pid") == "$started" ]] || return 1
    echo "$pid"
}

# All that descends from a pid, itself first.
with_children() {
    local child children
    echo "$1"
    read -ra children -d '' < <(cat "/proc/$1/task/"*/children 2>/dev/null) || true
    for child in "${children[@]}"; do with_children "$child"; done
}

all_gone() {
    local pid
    for pid in "$@"; do [[ -z $(start_time "$pid") ]] || return 1; done
}

# wait_for SECONDS COMMAND..
wait_for() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}
