//! MariaDB and MySQL: the session.

use diesel_async::{AsyncConnection as _, AsyncMysqlConnection, SimpleAsyncConnection};

/// - Strict, or values that do not fit would be cut and written.
/// - READ COMMITTED takes fewer locks between rows, so fewer deadlocks.
/// - Without autocommit a statement after a deadlock, whose error a closure swallowed, is rolled back as well instead of
///   standing alone.
const SETUP: &[&str] = &[
    "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION innodb_lock_wait_timeout = 30",
    "SET SESSION autocommit = 0",
];

/// What one of the two has and the other has not. The messages must be in English to be told apart, and a process that
/// stands still in the middle of a transaction must not hold its locks for ever.
const TRY: &[&str] =
    &["SET SESSION lc_messages = 'en_US'", "SET SESSION idle_write_transaction_timeout = 120"];

pub(super) async fn open(url: &str) -> Result<AsyncMysqlConnection, String> {
    let mut connection = AsyncMysqlConnection::establish(url).await.map_err(|error| error.to_string())?;
    for setting in SETUP {
        connection.batch_execute(setting).await.map_err(|error| error.to_string())?;
    }
    for setting in TRY {
        let _ = connection.batch_execute(setting).await;
    }
    Ok(connection)
}
