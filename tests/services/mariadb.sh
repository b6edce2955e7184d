# shellcheck shell=bash disable=SC2154 # lib.sh sets them
# MariaDB with a data directory and a socket of its own. Sourced by ctl.

# Debian's mariadb-server-core makes no account, and needs none: any but root will do.
MARIADB_USER=nobody

mariadb_ports() { mariadb_port; }

mariadb_prepare() {
    [[ ! -d $data_root/mariadb ]] || return 0
    new_data mariadb "$MARIADB_USER"
    # --no-defaults everywhere: the machine's own configuration is not ours.
    local dir=$data_root/mariadb.new
    (as_user "$MARIADB_USER" "$(command -v mariadb-install-db)" --no-defaults --datadir="$dir" --skip-test-db \
        --auth-root-authentication-method=socket) || return 1
    (as_user "$MARIADB_USER" "$(command -v mariadbd)" --no-defaults --datadir="$dir" --bootstrap) <<END || return 1
FLUSH PRIVILEGES;
CREATE DATABASE $FLOW_DATABASE;
CREATE USER '$FLOW_USER'@'%' IDENTIFIED BY '$FLOW_PASSWORD';
GRANT ALL ON \`$FLOW_DATABASE\`.* TO '$FLOW_USER'@'%';
GRANT ALL ON \`$FLOW_DATABASE\\_%\`.* TO '$FLOW_USER'@'%';
END
    keep_data mariadb
}

# Durability stays at its default: what survives a kill must not depend on a setting made for speed.
mariadb_launch() {
    as_user "$MARIADB_USER" "$(command -v mariadbd)" --no-defaults --datadir="$data_root/mariadb" \
        --bind-address="$HOST" --port="$(mariadb_port)" --socket="$data_root/mariadb/socket" \
        --pid-file="$data_root/mariadb/mariadbd.pid" --skip-log-bin --skip-name-resolve --max-connections=200 \
        --character-set-server=utf8mb4
}

mariadb_answers() {
    MYSQL_PWD=$FLOW_PASSWORD mariadb --no-defaults --protocol=tcp --host="$HOST" --port="$(mariadb_port)" \
        --user="$FLOW_USER" --connect-timeout=5 --execute='SELECT 1' "$FLOW_DATABASE" >/dev/null 2>&1
}

mariadb_stop_signal() { echo TERM; }
