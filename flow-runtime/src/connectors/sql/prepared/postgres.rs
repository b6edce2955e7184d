//! PostgreSQL: `PREPARE TRANSACTION` and what belongs to it.

use super::{TransactionId, control::End, doubt::InDoubt};
use crate::connectors::sql::{
    connection::Connection, error::SqlError, identifier::quote_text, ledger::names, url::Backend,
};

/// What a session that writes wants different.
///
/// - It must notice that its rows are locked by what will not go away by itself.
/// - Between the first row and the barrier an epoch may be silent for long.
/// - The driver keeps count of transactions, and has to be told that a prepared one is over; the server finds that odd.
pub(super) const WRITING: &str = "SET lock_timeout = '10s'; \
    SET idle_in_transaction_session_timeout = '30min'; SET client_min_messages = error";

pub(super) fn end(id: &TransactionId, how: End) -> String {
    match how {
        End::Commit => format!("COMMIT PREPARED '{id}'"),
        End::Rollback => format!("ROLLBACK PREPARED '{id}'"),
    }
}

/// Which transaction the session is in: a number that a closure which ends it would change.
pub(super) async fn current(connection: &mut Connection) -> Result<Option<String>, SqlError> {
    Ok(names(connection, "SELECT CAST(txid_current() AS text) AS name").await?.pop())
}

/// Prepares the session's transaction, and looks whether it is prepared: after a statement that failed, and whose error
/// somebody swallowed, the server answers with a rollback and reports no error. Tells whether it is.
pub(super) async fn prepare(connection: &mut Connection, id: &TransactionId) -> Result<bool, SqlError> {
    connection.batch(&format!("PREPARE TRANSACTION '{id}'")).await?;
    is_prepared(connection, id).await
}

pub(super) async fn is_prepared(connection: &mut Connection, id: &TransactionId) -> Result<bool, SqlError> {
    let text = format!(
        "SELECT gid AS name FROM pg_prepared_xacts WHERE gid = '{id}' AND database = current_database()"
    );
    Ok(!names(connection, &text).await?.is_empty())
}

pub(super) async fn list(connection: &mut Connection, prefix: &str) -> Result<Vec<InDoubt>, SqlError> {
    let prefix = quote_text(Backend::Postgres, prefix);
    let text = format!(
        "SELECT gid || chr(10) || CAST(GREATEST(0, floor(extract(epoch FROM now() - prepared))) AS bigint) AS name \
         FROM pg_prepared_xacts WHERE left(gid, length({prefix})) = {prefix} \
         AND database = current_database() ORDER BY prepared"
    );
    let found = names(connection, &text).await?;
    Ok(found
        .iter()
        .filter_map(|line| {
            let (id, seconds) = line.split_once('\n')?;
            let age = seconds.parse().ok().map(std::time::Duration::from_secs);
            Some(InDoubt { id: id.parse().ok()?, age })
        })
        .collect())
}

/// What the server has to allow. `parallelism` subtasks prepare at the same time.
pub(super) async fn check(connection: &mut Connection, parallelism: usize) -> Result<(), SqlError> {
    let setting = names(
        connection,
        "SELECT current_setting('max_prepared_transactions') || chr(10) || current_setting('server_version_num') AS name",
    )
    .await?;
    let numbers: Vec<usize> =
        setting.iter().flat_map(|s| s.split('\n')).filter_map(|n| n.parse().ok()).collect();
    let [slots, version] = numbers[..] else { return Ok(()) };
    // While one epoch is being committed the next may be prepared already.
    let wanted = 2 * parallelism;
    let remedy = format!(
        "run `ALTER SYSTEM SET max_prepared_transactions = {}` as a superuser and restart the server, or leave out `.prepared_transactions()`: the ledger, which is the default, needs no prepared transactions",
        wanted.max(64)
    );
    if version < 90_600 {
        return Err(SqlError::Setup(format!(
            "prepared transactions need PostgreSQL 9.6 or newer, and this is {}.{}: leave out `.prepared_transactions()`",
            version / 10_000,
            version / 100 % 100
        )));
    }
    if slots == 0 {
        return Err(SqlError::Setup(format!(
            "PostgreSQL has prepared transactions turned off (`max_prepared_transactions` is 0): {remedy}"
        )));
    }
    if slots < parallelism {
        return Err(SqlError::Setup(format!(
            "PostgreSQL allows {slots} prepared transactions (`max_prepared_transactions`), and {parallelism} subtasks prepare one each: {remedy}"
        )));
    }
    if slots < wanted {
        tracing::warn!(
            "PostgreSQL allows {slots} prepared transactions (`max_prepared_transactions`), and {parallelism} subtasks may have two each: {remedy}"
        );
    }
    Ok(())
}

/// What an error of the first transaction probably means.
pub(super) fn explain(error: &str) -> &'static str {
    if error.contains("maximum number of prepared transactions") {
        "; others hold them all: look into `pg_prepared_xacts`, end what nobody needs, or raise `max_prepared_transactions` and restart the server"
    } else if error.contains("permission denied") {
        "; grant the sink's user SELECT, INSERT, UPDATE and DELETE on `flow_transactions`"
    } else {
        ""
    }
}
