//! MariaDB and MySQL: XA.

use mysql_async::{Conn, Opts, prelude::Queryable};

use super::{TransactionId, control::End, doubt::InDoubt};
use crate::connectors::sql::{
    connection::Connection,
    error::SqlError,
    ledger::names,
    url::{Backend, DatabaseUrl},
};

/// "FLOW": what tells our transactions from those of others.
const FORMAT: u32 = 0x464c_4f57;

/// What a session that writes wants different: it must notice that its rows are locked by what will not go away by itself,
/// be it a lock of a row or of the table's definition.
pub(super) const WRITING: &str = "SET SESSION innodb_lock_wait_timeout = 10, SESSION lock_wait_timeout = 10";
/// Between the first row and the barrier an epoch may be silent for long. MySQL has no such setting.
pub(super) const TRY: &str = "SET SESSION idle_write_transaction_timeout = 1800";

/// As XA statements take it. The names hold nothing that would need quoting.
fn xid(id: &TransactionId) -> String {
    let (global, branch) = id.xa();
    format!("'{global}','{branch}',{FORMAT}")
}

pub(super) fn begin(id: &TransactionId) -> String {
    format!("XA START {}", xid(id))
}

pub(super) fn prepare(id: &TransactionId) -> String {
    let xid = xid(id);
    format!("XA END {xid}; XA PREPARE {xid}")
}

pub(super) fn abandon(id: &TransactionId) -> [String; 2] {
    let xid = xid(id);
    [format!("XA END {xid}"), format!("XA ROLLBACK {xid}")]
}

pub(super) fn end(id: &TransactionId, how: End) -> String {
    match how {
        End::Commit => format!("XA COMMIT {}", xid(id)),
        End::Rollback => format!("XA ROLLBACK {}", xid(id)),
    }
}

/// The session's number.
pub(super) async fn number(connection: &mut Connection) -> Result<u32, SqlError> {
    let number = names(connection, "SELECT CAST(CONNECTION_ID() AS CHAR) AS name").await?;
    Ok(number.first().and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// All prepared transactions of the server whose names begin so. MySQL gives the list to text statements only, which
/// diesel has no way to read.
pub(super) async fn list(url: &DatabaseUrl, prefix: &str) -> Result<Vec<InDoubt>, SqlError> {
    let failed = |error: mysql_async::Error| SqlError::Connect {
        url: url.to_string(),
        cause: url.redact(&error.to_string()),
    };
    let opts = Opts::from_url(&url.target()?.address).map_err(|error| SqlError::InvalidUrl {
        url: url.to_string(),
        cause: url.redact(&error.to_string()),
    })?;
    let mut connection = Conn::new(opts).await.map_err(failed)?;
    let listed: Result<Vec<(u32, usize, usize, Vec<u8>)>, _> = connection.query("XA RECOVER").await;
    let _ = connection.disconnect().await;
    match listed {
        Ok(listed) => Ok(listed.into_iter().filter_map(|row| ours(row, prefix)).collect()),
        Err(mysql_async::Error::Server(error)) => Err(SqlError::Setup(format!(
            "cannot list the prepared transactions (`XA RECOVER`): {}; MySQL 8 needs: GRANT XA_RECOVER_ADMIN ON *.* TO the sink's user",
            error.message
        ))),
        Err(error) => Err(failed(error)),
    }
}

fn ours((format, global, branch, data): (u32, usize, usize, Vec<u8>), prefix: &str) -> Option<InDoubt> {
    let data = String::from_utf8(data).ok()?;
    if format != FORMAT || data.len() != global + branch {
        return None;
    }
    let (global, branch) = data.split_at_checked(global)?;
    let text = format!("{global}:{branch}");
    if !text.starts_with(prefix) {
        return None;
    }
    Some(InDoubt { id: text.parse().ok()?, age: None })
}

/// What the server has to be.
pub(super) async fn check(connection: &mut Connection) -> Result<(), SqlError> {
    let version = names(connection, "SELECT VERSION() AS name").await?.pop().unwrap_or_default();
    knows_xa(&version).map_err(SqlError::Setup)?;
    if version.contains("MariaDB") {
        let galera = "SELECT variable_value AS name FROM information_schema.global_variables \
                      WHERE variable_name = 'WSREP_ON' AND variable_value = 'ON'";
        // Who may not look there will learn it from the first transaction.
        if names(connection, galera).await.is_ok_and(|on| !on.is_empty()) {
            return Err(SqlError::Setup(
                "Galera Cluster has no XA transactions: leave out `.prepared_transactions()`; the ledger, which is the default, works there"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

/// Older versions roll a prepared transaction back when its connection closes.
fn knows_xa(version: &str) -> Result<(), String> {
    let mariadb = version.contains("MariaDB");
    // Some call themselves 5.5.5 first, for old clients.
    let number = version.strip_prefix("5.5.5-").filter(|_| mariadb).unwrap_or(version);
    let mut parts = number.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    let number = (next(), next(), next());
    let (name, oldest) = if mariadb { ("MariaDB", (10, 5, 2)) } else { ("MySQL", (5, 7, 7)) };
    if number >= oldest {
        return Ok(());
    }
    let (major, minor, patch) = oldest;
    Err(format!(
        "this server is {version}, and {name} before {major}.{minor}.{patch} forgets a prepared transaction when its connection closes: update it, or leave out `.prepared_transactions()`: the ledger, which is the default, works there"
    ))
}

/// What an error of the first transaction probably means.
pub(super) fn explain(error: &str) -> &'static str {
    if error.contains("denied") {
        "; grant the sink's user SELECT, INSERT, UPDATE and DELETE on `flow_transactions`"
    } else {
        ""
    }
}

/// Of a connection to this kind of database only.
pub(super) fn is(connection: &Connection) -> bool {
    connection.backend() == Backend::Mysql
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::sql::prepared::owner::Owner;

    #[test]
    fn versions_that_forget_are_refused() {
        for version in
            ["10.11.19-MariaDB-0+deb12u1", "10.5.2-MariaDB", "11.4.1-MariaDB", "8.0.36", "5.7.7-log"]
        {
            assert_eq!(knows_xa(version), Ok(()), "{version}");
        }
        assert_eq!(knows_xa("5.5.5-10.6.1-MariaDB-log"), Ok(()));
        for version in ["10.4.30-MariaDB", "10.5.1-MariaDB", "5.7.6", "5.6.51-log"] {
            let why = knows_xa(version).unwrap_err();
            assert!(why.contains("forgets") && why.contains("update it"), "{why}");
        }
    }

    #[test]
    fn only_ours_are_listed() {
        let owner = Owner { job: "a".into(), sink: "b".into(), attempt: 5 };
        let id = TransactionId::new(&owner, 1, 2, 3);
        let (global, branch) = id.xa();
        let row = |format| (format, global.len(), branch.len(), format!("{global}{branch}").into_bytes());
        assert_eq!(ours(row(FORMAT), &owner.prefix()).map(|found| found.id), Some(id.clone()));
        assert_eq!(ours(row(1), &owner.prefix()), None);
        assert_eq!(ours(row(FORMAT), "flow:other"), None);
        assert_eq!(ours((FORMAT, 1, 1, b"ab".to_vec()), ""), None);
        assert_eq!(ours((FORMAT, 9, 1, vec![0xff, 0xfe]), ""), None);
    }
}
