//! Transactions in doubt: prepared, and neither committed nor rolled back. For people, when a job cannot come back.

use std::time::Duration;

use super::{
    TransactionId,
    control::{Control, End, Ended},
    id::sink_prefix,
};
use crate::connectors::sql::{
    error::SqlError,
    sink::{Prepared, SqlSink},
    work::Work,
};

/// A transaction that is prepared and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InDoubt {
    /// What names it.
    pub id: TransactionId,
    /// Since when it is prepared, where the database tells: MariaDB and MySQL do not.
    pub age: Option<Duration>,
}

/// How an attempt to end a transaction in doubt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// It ended as wanted.
    Now,
    /// It was not in doubt any more.
    Gone,
}

impl<W: Work> SqlSink<W, Prepared> {
    /// The transactions of a sink that are in doubt, the oldest first where the database tells. While the job runs these
    /// are the ones that wait for their checkpoint; leave them to it.
    ///
    /// # Errors
    /// What the database says.
    pub async fn in_doubt(&self, job: &str, operator: &str) -> Result<Vec<InDoubt>, SqlError> {
        Control::open(&self.setup.url).await?.list(&sink_prefix(job, operator)).await
    }

    /// Commits a transaction in doubt, by hand: right if the checkpoint that it belongs to is complete.
    ///
    /// # Errors
    /// What the database says.
    pub async fn commit_in_doubt(&self, id: &TransactionId) -> Result<Resolved, SqlError> {
        self.resolve(id, End::Commit).await
    }

    /// Rolls a transaction in doubt back, by hand: right if no checkpoint that the job may start from carries it. Otherwise
    /// the job will find it lost.
    ///
    /// # Errors
    /// What the database says.
    pub async fn abort_in_doubt(&self, id: &TransactionId) -> Result<Resolved, SqlError> {
        self.resolve(id, End::Rollback).await
    }

    async fn resolve(&self, id: &TransactionId, how: End) -> Result<Resolved, SqlError> {
        Ok(match Control::open(&self.setup.url).await?.end(id, how).await? {
            Ended::Now => Resolved::Now,
            Ended::Gone => Resolved::Gone,
        })
    }
}
