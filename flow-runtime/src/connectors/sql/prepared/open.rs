//! The transaction of an epoch, from its first row until it is prepared.

use super::{TransactionId, control::no_prepared_transactions, marker, owner::Owner};
use crate::connectors::sql::{
    connection::Connection,
    error::{Fault, SqlError},
    handle::Staged,
    transaction::Transaction,
    url::{Backend, DatabaseUrl},
    work::{Failure, How, Work},
};

/// A transaction that rows go into.
pub(super) struct Open {
    tx: Transaction,
    id: TransactionId,
    /// As its marker has it.
    subtask: i64,
    /// Which one PostgreSQL says that it is.
    current: Option<String>,
}

/// Why a transaction is not prepared.
#[derive(Debug)]
pub(super) enum Unprepared {
    /// It must not be, and this is why.
    Refused(String),
    /// The database did not do it, or did not say that it did. `asked` tells whether it may still do it.
    Failed { fault: Fault, asked: bool },
}

impl<E: Into<SqlError>> From<E> for Unprepared {
    fn from(error: E) -> Self {
        Unprepared::Failed { fault: error.into().into(), asked: false }
    }
}

/// Prepares a transaction that holds nothing but its marker, under a subtask that there is not.
pub(super) async fn prepare_empty(
    connection: Connection,
    owner: &Owner,
    subtask: i64,
) -> Result<(Option<Connection>, TransactionId), SqlError> {
    // Each attempt has another key, so as not to wait for what one before it left.
    let epoch = owner.attempt >> 1;
    let mut open = Open::begin(connection, owner, 0, epoch, false).await?;
    open.subtask = subtask;
    let (connection, prepared) = open.prepare(owner, "the sink", epoch).await;
    match prepared {
        Ok(id) => Ok((connection, id)),
        Err(Unprepared::Refused(why)) => Err(SqlError::Setup(why)),
        Err(Unprepared::Failed { fault, .. }) => Err(match fault.error.downcast::<SqlError>() {
            Ok(error) => *error,
            Err(error) => SqlError::Setup(error.to_string()),
        }),
    }
}

/// Connects, with a session as it should be for transactions that stay open for an epoch.
pub(super) async fn connect(url: &DatabaseUrl) -> Result<Connection, SqlError> {
    let mut connection = Connection::open(url).await?;
    match connection.backend() {
        #[cfg(feature = "postgres")]
        Backend::Postgres => connection.batch(super::postgres::WRITING).await?,
        #[cfg(feature = "mysql")]
        Backend::Mysql => {
            connection.batch(super::mysql::WRITING).await?;
            let _ = connection.batch(super::mysql::TRY).await;
        }
        #[allow(unreachable_patterns, reason = "reachable when a feature is off")]
        _ => return Err(no_prepared_transactions()),
    }
    Ok(connection)
}

impl Open {
    /// Begins the transaction of an epoch. `foreign` says whether code that is not ours may end it.
    pub(super) async fn begin(
        mut connection: Connection,
        owner: &Owner,
        subtask: usize,
        epoch: u64,
        foreign: bool,
    ) -> Result<Self, SqlError> {
        let (mut number, mut current) = (0, None);
        #[cfg(feature = "mysql")]
        if super::mysql::is(&connection) {
            number = super::mysql::number(&mut connection).await?;
        }
        let id = TransactionId::new(owner, subtask, epoch, number);
        match connection.backend() {
            #[cfg(feature = "mysql")]
            Backend::Mysql => connection.begin_as(&super::mysql::begin(&id)).await?,
            _ => connection.begin().await?,
        }
        #[cfg(feature = "postgres")]
        if foreign && connection.backend() == Backend::Postgres {
            current = super::postgres::current(&mut connection).await?;
        }
        // With one database only, nothing changes them.
        let _ = (&mut number, &mut current, foreign);
        Ok(Open { tx: Transaction { connection }, id, subtask: subtask as i64, current })
    }

    pub(super) async fn write<W: Work>(&mut self, work: &W, rows: &Staged) -> Result<(), Fault> {
        work.apply(&mut self.tx, rows, How::Batched).await.map_err(|Failure(fault)| fault)
    }

    /// The name, which becomes the transaction's when it is prepared.
    pub(super) fn id(&self) -> &TransactionId {
        &self.id
    }

    /// Leaves the marker and prepares. The connection comes back if it is still good for something: in PostgreSQL for the
    /// next transaction, in MariaDB and MySQL first for the end of this one, which it [holds](super::live).
    /// `writer` is what wrote into it, for messages.
    pub(super) async fn prepare(
        mut self,
        owner: &Owner,
        writer: &str,
        epoch: u64,
    ) -> (Option<Connection>, Result<TransactionId, Unprepared>) {
        match self.try_prepare(owner, writer, epoch).await {
            Ok(()) => {
                let (id, connection) = (self.id.clone(), self.tx.connection);
                let holds = connection.backend() == Backend::Mysql;
                // The driver has to be told that the transaction is over.
                (if holds { Some(connection) } else { connection.rolled_back().await }, Ok(id))
            }
            Err(error) => (self.abandon().await, Err(error)),
        }
    }

    async fn try_prepare(&mut self, owner: &Owner, writer: &str, epoch: u64) -> Result<(), Unprepared> {
        let ended = || {
            Unprepared::Refused(format!(
                "{writer} has ended the transaction that it was given, or went on after an error that ended it: neither commit nor roll back in it, and return its errors"
            ))
        };
        let connection = &mut self.tx.connection;
        #[cfg(feature = "postgres")]
        if self.current.is_some() && super::postgres::current(connection).await? != self.current {
            return Err(ended());
        }
        let _ = &self.current;
        let inserted = marker::insert(connection, owner, self.subtask, epoch).await;
        if !inserted.map_err(|error| taken(owner, epoch, error))? {
            return Err(Unprepared::Refused(owner.fenced()));
        }
        let prepared = match connection.backend() {
            #[cfg(feature = "postgres")]
            Backend::Postgres => {
                self.id.epoch = epoch;
                super::postgres::prepare(connection, &self.id).await
            }
            #[cfg(feature = "mysql")]
            Backend::Mysql => match connection.batch(&super::mysql::prepare(&self.id)).await {
                Ok(()) => Ok(true),
                Err(error) => Err(error.into()),
            },
            #[allow(unreachable_patterns, reason = "reachable when a feature is off")]
            _ => Err(no_prepared_transactions()),
        };
        match prepared {
            Ok(true) => Ok(()),
            Ok(false) => Err(ended()),
            Err(error) => Err(Unprepared::Failed { fault: error.into(), asked: true }),
        }
    }

    /// Rolls back; the connection comes back if it is still good for something.
    pub(super) async fn abandon(self) -> Option<Connection> {
        #[cfg(feature = "mysql")]
        if super::mysql::is(&self.tx.connection) {
            let mut connection = self.tx.connection;
            let rollback = async {
                for statement in super::mysql::abandon(&self.id) {
                    // After a deadlock the first is an error, and the second still right.
                    let _ = connection.batch(&statement).await;
                }
            };
            // Closing it rolls back as well, only later.
            let _ = tokio::time::timeout(std::time::Duration::from_secs(10), rollback).await;
            return None;
        }
        self.tx.connection.rolled_back().await
    }
}

/// The key of markers stops an epoch that is committed already.
fn taken(owner: &Owner, epoch: u64, error: SqlError) -> Unprepared {
    use diesel::result::{DatabaseErrorKind, Error};
    match &error {
        SqlError::Database(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => {
            Unprepared::Refused(format!("checkpoint {epoch} is committed already: {}", owner.fenced()))
        }
        _ => error.into(),
    }
}
