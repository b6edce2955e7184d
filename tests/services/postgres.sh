# shellcheck shell=bash disable=SC2154 # lib.sh sets them
# PostgreSQL with a data directory of its own and no socket but TCP. Sourced by ctl.

POSTGRES_USER=postgres

postgres_ports() { postgres_port; }

# Debian keeps the server's programs out of the PATH; the newest version that is there will do.
postgres_bin() {
    local dirs=()
    mapfile -t dirs < <(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -rV)
    if [[ -n ${dirs[0]:-} && -x ${dirs[0]}/initdb ]]; then echo "${dirs[0]}/"; fi
}

postgres_prepare() {
    # ctl knows that no server of ours is left. PostgreSQL only sees the pid of the last one, which after a kill may
    # live on as a zombie for as long as pid 1 likes, and would refuse to start.
    rm -f "$data_root/postgres/postmaster.pid"
    [[ ! -d $data_root/postgres ]] || return 0
    local bin
    bin=$(postgres_bin)
    new_data postgres "$POSTGRES_USER"
    (as_user "$POSTGRES_USER" "${bin}initdb" --pgdata="$data_root/postgres.new" --username=postgres \
        --auth=reject --encoding=UTF8 --locale=C.UTF-8 --no-instructions) || return 1
    echo "host all all $HOST/32 scram-sha-256" >"$data_root/postgres.new/pg_hba.conf"
    # Through the single-user server, so that nobody connects before all is in place. An empty line ends a statement.
    (as_user "$POSTGRES_USER" "${bin}postgres" --single -j -D "$data_root/postgres.new" postgres) <<END || return 1
ALTER ROLE postgres PASSWORD '$FLOW_PASSWORD';

CREATE ROLE $FLOW_USER LOGIN CREATEDB PASSWORD '$FLOW_PASSWORD';

CREATE DATABASE $FLOW_DATABASE OWNER $FLOW_USER;

END
    keep_data postgres
}

# Durability stays at its default: what survives a kill must not depend on a setting made for speed.
# FLOW_TEST_POSTGRES_PREPARED: how many prepared transactions it allows; empty for what its own configuration says.
postgres_launch() {
    local prepared=${FLOW_TEST_POSTGRES_PREPARED-64} options=()
    if [[ -n $prepared ]]; then options=(-c max_prepared_transactions="$prepared"); fi
    as_user "$POSTGRES_USER" "$(postgres_bin)postgres" -D "$data_root/postgres" \
        -c listen_addresses="$HOST" -c port="$(postgres_port)" -c unix_socket_directories= \
        -c max_connections=200 "${options[@]}"
}

postgres_answers() {
    PGPASSWORD=$FLOW_PASSWORD PGCONNECT_TIMEOUT=5 psql --no-psqlrc --host="$HOST" --port="$(postgres_port)" \
        --username="$FLOW_USER" --dbname="$FLOW_DATABASE" --command='SELECT 1' >/dev/null 2>&1
}

# "Fast": open connections are cut off instead of waited for.
postgres_stop_signal() { echo INT; }
