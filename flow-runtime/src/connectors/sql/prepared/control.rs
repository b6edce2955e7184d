//! A connection that ends transactions which others have prepared.

use std::time::Duration;

use tokio::time::Instant;

use super::{TransactionId, doubt::InDoubt};
use crate::connectors::sql::{
    connection::Connection,
    error::SqlError,
    ledger::names,
    url::{Backend, DatabaseUrl},
};

/// Commits, rolls back, and lists.
pub(super) struct Control {
    pub(super) url: DatabaseUrl,
    pub(super) connection: Connection,
}

/// How a prepared transaction is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Commit,
    Rollback,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By this call.
    Now,
    /// It was not there any more: only its marker tells how it ended.
    Gone,
}

/// In MariaDB, how long to wait until the connection that prepared a transaction is closed, before closing it ourselves.
const CLOSE_AFTER: Duration = Duration::from_secs(1);
/// And how long from then on, because a connection leaves the list of connections before it has let go of everything.
const LET_GO: Duration = Duration::from_millis(100);
/// How often a connection is closed before a later call has to try again.
const CLOSES: u32 = 3;

impl Control {
    pub(super) async fn open(url: &DatabaseUrl) -> Result<Self, SqlError> {
        Self::on(Connection::open(url).await?, url).await
    }

    /// On a connection that is in no transaction.
    pub(super) async fn on(mut connection: Connection, url: &DatabaseUrl) -> Result<Self, SqlError> {
        if connection.backend() == Backend::Mysql {
            // A mere read would begin a transaction, and within one no other can be ended.
            connection.batch("SET SESSION autocommit = 1").await?;
        }
        Ok(Control { url: url.clone(), connection })
    }

    /// Ends a prepared transaction. Errors are those of a transaction that is still prepared, or of a server that is away:
    /// the same call may come again.
    ///
    /// MariaDB: as long as the connection that prepared it is open, the server says that there is no such transaction. While
    /// it is being closed there is a moment at which the server says that it has committed, or rolled back, and has done
    /// neither: InnoDB does not know the transaction yet as one without a connection, and the list of transactions does not
    /// know it any more. It keeps its locks, and comes back when the server starts again. So wait for the connection to be
    /// gone, and never end a transaction right after it.
    pub(super) async fn end(&mut self, id: &TransactionId, how: End) -> Result<Ended, SqlError> {
        let mut closes = 0;
        loop {
            self.await_closed(id).await?;
            let Err(error) = self.try_end(id, how).await else { return Ok(Ended::Now) };
            // What the error means depends on what is there now.
            if !self.is_prepared(id).await? {
                return Ok(Ended::Gone);
            }
            if !self.is_attached(&error) || closes >= CLOSES {
                return Err(error);
            }
            closes += 1;
            self.close_owner(id).await?;
        }
    }

    /// Waits until the connection that prepared it is closed. In PostgreSQL none has to be.
    async fn await_closed(&mut self, id: &TransactionId) -> Result<(), SqlError> {
        if id.connection == 0 {
            return Ok(());
        }
        let listed = format!(
            "SELECT CAST(id AS CHAR) AS name FROM information_schema.processlist \
             WHERE id = {} AND id <> CONNECTION_ID()",
            id.connection
        );
        let deadline = Instant::now() + CLOSE_AFTER;
        while !names(&mut self.connection, &listed).await?.is_empty() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(LET_GO).await;
        Ok(())
    }

    /// Asks the server once.
    pub(super) async fn try_end(&mut self, id: &TransactionId, how: End) -> Result<(), SqlError> {
        let text = match self.connection.backend() {
            #[cfg(feature = "postgres")]
            Backend::Postgres => super::postgres::end(id, how),
            #[cfg(feature = "mysql")]
            Backend::Mysql => super::mysql::end(id, how),
            #[allow(unreachable_patterns, reason = "reachable when a feature is off")]
            _ => return Err(no_prepared_transactions()),
        };
        Ok(self.connection.batch(&text).await?)
    }

    /// Whether the error says that the connection which prepared it is still open. Then nobody else can end it.
    fn is_attached(&self, error: &SqlError) -> bool {
        self.connection.backend() == Backend::Mysql && error.to_string().contains("XAER_NOTA")
    }

    /// Closes the connection that prepared a transaction, which must still be attached to it: the connection's number is
    /// not used again before the server starts again, and then nothing is attached.
    async fn close_owner(&mut self, id: &TransactionId) -> Result<(), SqlError> {
        tracing::warn!(
            transaction = %id,
            connection = id.connection,
            "closing the connection that prepared a transaction and was left open"
        );
        let kill = format!("KILL CONNECTION {}", id.connection);
        match self.connection.batch(&kill).await.map_err(SqlError::from) {
            Err(error) if !error.to_string().contains("Unknown thread id") => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether it is prepared and not yet ended.
    pub(super) async fn is_prepared(&mut self, id: &TransactionId) -> Result<bool, SqlError> {
        match self.connection.backend() {
            #[cfg(feature = "postgres")]
            Backend::Postgres => super::postgres::is_prepared(&mut self.connection, id).await,
            _ => Ok(self.list(&id.to_string()).await?.iter().any(|found| found.id == *id)),
        }
    }

    /// The prepared transactions whose names begin so.
    pub(super) async fn list(&mut self, prefix: &str) -> Result<Vec<InDoubt>, SqlError> {
        match self.connection.backend() {
            #[cfg(feature = "postgres")]
            Backend::Postgres => super::postgres::list(&mut self.connection, prefix).await,
            #[cfg(feature = "mysql")]
            Backend::Mysql => super::mysql::list(&self.url, prefix).await,
            #[allow(unreachable_patterns, reason = "reachable when a feature is off")]
            _ => Err(no_prepared_transactions()),
        }
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Of SQLite.
pub(super) fn no_prepared_transactions() -> SqlError {
    SqlError::Setup(
        "SQLite has no prepared transactions: leave out `.prepared_transactions()`; the ledger, which is the default, is exactly once as well"
            .to_owned(),
    )
}
