//! A connection to whichever database the URL names.

use std::{sync::Arc, time::Duration};

use diesel::QueryResult;
#[cfg(any(feature = "postgres", feature = "mysql"))]
use diesel_async::{AnsiTransactionManager, TransactionManager};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{
    error::SqlError,
    statement::Statement,
    url::{Backend, DatabaseUrl, Target},
};

/// How long a server may take to answer a connect.
const CONNECT: Duration = Duration::from_secs(20);
/// How long a `ROLLBACK` may take before the connection is given up.
const ROLLBACK: Duration = Duration::from_secs(10);

pub(super) enum Connection {
    #[cfg(feature = "sqlite")]
    Sqlite(super::sqlite::Sqlite),
    #[cfg(feature = "postgres")]
    Postgres(Box<super::postgres::Postgres>),
    #[cfg(feature = "mysql")]
    Mysql(Box<diesel_async::AsyncMysqlConnection>),
}

/// Runs the same code on the diesel connection of each database.
macro_rules! each {
    ($connection:expr, $diesel:ident => $code:expr) => {
        match $connection {
            #[cfg(feature = "sqlite")]
            $crate::connectors::sql::connection::Connection::Sqlite(sqlite) => {
                let $diesel = &mut sqlite.diesel;
                $code
            }
            #[cfg(feature = "postgres")]
            $crate::connectors::sql::connection::Connection::Postgres(postgres) => {
                let $diesel = &mut postgres.diesel;
                $code
            }
            #[cfg(feature = "mysql")]
            $crate::connectors::sql::connection::Connection::Mysql(mysql) => {
                let $diesel = &mut **mysql;
                $code
            }
        }
    };
}
pub(super) use each;

impl Connection {
    /// Connects and sets the session up.
    pub(super) async fn open(url: &DatabaseUrl) -> Result<Self, SqlError> {
        let target = url.target()?;
        let failed = |cause: String| SqlError::Connect { url: url.to_string(), cause: url.redact(&cause) };
        match tokio::time::timeout(CONNECT, Self::establish(&target)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(cause)) => Err(failed(cause)),
            Err(_) => Err(failed(format!("no answer within {} s", CONNECT.as_secs()))),
        }
    }

    async fn establish(target: &Target) -> Result<Self, String> {
        match target.backend {
            #[cfg(feature = "sqlite")]
            Backend::Sqlite => super::sqlite::Sqlite::open(&target.address).await.map(Connection::Sqlite),
            #[cfg(feature = "postgres")]
            Backend::Postgres => {
                super::postgres::Postgres::open(&target.address).await.map(Box::new).map(Connection::Postgres)
            }
            #[cfg(feature = "mysql")]
            Backend::Mysql => super::mysql::open(&target.address).await.map(Box::new).map(Connection::Mysql),
            #[allow(unreachable_patterns, reason = "reachable when a feature is off")]
            backend => Err(format!("the feature `{}` is off", backend.feature())),
        }
    }

    pub(super) fn backend(&self) -> Backend {
        match self {
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(_) => Backend::Sqlite,
            #[cfg(feature = "postgres")]
            Connection::Postgres(_) => Backend::Postgres,
            #[cfg(feature = "mysql")]
            Connection::Mysql(_) => Backend::Mysql,
        }
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn as_sqlite(&mut self) -> Option<&mut super::sqlite::Sqlite> {
        match self {
            Connection::Sqlite(sqlite) => Some(sqlite),
            #[allow(unreachable_patterns, reason = "reachable with another feature")]
            _ => None,
        }
    }

    #[cfg(feature = "postgres")]
    pub(super) fn as_postgres(&mut self) -> Option<&mut super::postgres::Postgres> {
        match self {
            Connection::Postgres(postgres) => Some(postgres),
            #[allow(unreachable_patterns, reason = "reachable with another feature")]
            _ => None,
        }
    }

    #[cfg(feature = "mysql")]
    pub(super) fn as_mysql(&mut self) -> Option<&mut diesel_async::AsyncMysqlConnection> {
        match self {
            Connection::Mysql(mysql) => Some(mysql),
            #[allow(unreachable_patterns, reason = "reachable with another feature")]
            _ => None,
        }
    }

    /// Runs statements that take no parameters.
    pub(super) async fn batch(&mut self, text: &str) -> QueryResult<()> {
        each!(self, diesel => diesel.batch_execute(text).await)
    }

    /// Runs a statement, and tells how many rows it found.
    pub(super) async fn run(&mut self, statement: Statement<'_>) -> QueryResult<usize> {
        each!(self, diesel => RunQueryDsl::execute(statement, diesel).await)
    }

    /// SQLite has one writer at a time: the subtasks of one process queue for it here, in order and asleep, instead of
    /// trying again and again. Nothing for a server.
    pub(super) fn turn(&self) -> impl Future<Output = Option<OwnedMutexGuard<()>>> + Send + use<> {
        let turn: Option<Arc<Mutex<()>>> = match self {
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(sqlite) => Some(Arc::clone(&sqlite.turn)),
            #[allow(unreachable_patterns, reason = "reachable with another feature")]
            _ => None,
        };
        async move {
            match turn {
                Some(turn) => Some(turn.lock_owned().await),
                None => None,
            }
        }
    }

    /// Through diesel's transaction manager, so that a transaction inside a closure becomes a savepoint.
    pub(super) async fn begin(&mut self) -> QueryResult<()> {
        match self {
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(sqlite) => sqlite.begin().await,
            #[cfg(feature = "postgres")]
            Connection::Postgres(postgres) => {
                AnsiTransactionManager::begin_transaction(&mut postgres.diesel).await
            }
            #[cfg(feature = "mysql")]
            Connection::Mysql(mysql) => AnsiTransactionManager::begin_transaction(&mut **mysql).await,
        }
    }

    /// As [`begin`](Self::begin), by another statement.
    #[cfg(feature = "mysql")]
    pub(super) async fn begin_as(&mut self, statement: &str) -> QueryResult<()> {
        match self {
            Connection::Mysql(mysql) => {
                AnsiTransactionManager::begin_transaction_sql(&mut **mysql, statement).await
            }
            #[allow(unreachable_patterns, reason = "reachable with another feature")]
            _ => self.begin().await,
        }
    }

    pub(super) async fn commit(&mut self) -> QueryResult<()> {
        match self {
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(sqlite) => sqlite.commit().await,
            #[cfg(feature = "postgres")]
            Connection::Postgres(postgres) => {
                AnsiTransactionManager::commit_transaction(&mut postgres.diesel).await
            }
            #[cfg(feature = "mysql")]
            Connection::Mysql(mysql) => AnsiTransactionManager::commit_transaction(&mut **mysql).await,
        }
    }

    /// Rolls back; the connection comes back if it is still good for something.
    pub(super) async fn rolled_back(mut self) -> Option<Self> {
        let rollback = async {
            match &mut self {
                #[cfg(feature = "sqlite")]
                Connection::Sqlite(sqlite) => sqlite.rollback().await,
                #[cfg(feature = "postgres")]
                Connection::Postgres(postgres) => {
                    AnsiTransactionManager::rollback_transaction(&mut postgres.diesel).await
                }
                #[cfg(feature = "mysql")]
                Connection::Mysql(mysql) => AnsiTransactionManager::rollback_transaction(&mut **mysql).await,
            }
        };
        match tokio::time::timeout(ROLLBACK, rollback).await {
            Ok(Ok(())) => Some(self),
            _ => None,
        }
    }
}
