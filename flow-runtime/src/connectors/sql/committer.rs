//! The committing half: it applies staged epochs.

use std::sync::Arc;

use super::{
    connection::Connection,
    epoch::{self, Applied, commit_error},
    handle::Staged,
    ledger::{self, Owner},
    sink::Setup,
    work::Work,
};
use crate::{
    checkpoint::CheckpointId,
    error::BoxError,
    sink::{CommitError, Committed, SinkCommitter},
};

/// Applies the staged epochs of one subtask, on a connection of its own.
pub struct LedgerCommitter<W> {
    setup: Arc<Setup<W>>,
    owner: Owner,
    subtask: usize,
    /// `None` while it is in use, so that a call that is dropped half way drops it too, and with it the transaction.
    connection: Option<Connection>,
    stands_at: u64,
    unclear: u32,
}

impl<W: Work> LedgerCommitter<W> {
    pub(super) async fn open(setup: Arc<Setup<W>>, owner: Owner, subtask: usize) -> Result<Self, BoxError> {
        let mut connection = Connection::open(&setup.url).await?;
        let entry = ledger::entry(&mut connection, &owner, subtask).await;
        // Ends the transaction that a mere read opens where there is no autocommit.
        connection.batch("ROLLBACK").await.or_else(|error| match connection.backend() {
            super::url::Backend::Mysql => Err(error),
            _ => Ok(()),
        })?;
        let Some(stands_at) = entry?.and_then(|entry| entry.epoch_for(&owner)) else {
            return Err(format!(
                "sink `{}` of job `{}`, subtask {subtask}: the table `{}` has no row of this run: another copy of this job has started and taken over; if both are meant to run, give them different names",
                owner.sink,
                owner.job,
                ledger::TABLE
            )
            .into());
        };
        Ok(LedgerCommitter { setup, owner, subtask, connection: Some(connection), stands_at, unclear: 0 })
    }

    /// The last epoch of this subtask that is applied, as it was when this was opened.
    pub(super) fn stands_at(&self) -> u64 {
        self.stands_at
    }
}

impl<W: Work> SinkCommitter for LedgerCommitter<W> {
    type Handle = Staged;

    async fn commit(&mut self, checkpoint: CheckpointId, staged: &Staged) -> Result<Committed, CommitError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.setup.url).await.map_err(|e| CommitError::Retry(e.into()))?,
        };
        let Setup { work, .. } = &*self.setup;
        let (connection, applied) =
            epoch::apply(connection, &self.owner, work, self.subtask, checkpoint, staged).await;
        self.connection = connection;
        match applied {
            Applied::Yes(committed) => {
                self.unclear = 0;
                Ok(committed)
            }
            Applied::Refused(why) => Err(CommitError::Lost(why.into())),
            Applied::Failed(fault, class) => {
                let owner = format!("sink `{}`, checkpoint {checkpoint}", self.owner.sink);
                let error = epoch::tell(&owner, &work.place(), staged.rows(), &fault);
                Err(commit_error(class, &mut self.unclear, error))
            }
        }
    }
}

impl<W> std::fmt::Debug for LedgerCommitter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LedgerCommitter")
            .field("owner", &self.owner)
            .field("subtask", &self.subtask)
            .finish_non_exhaustive()
    }
}

/// Of a sink without transactions.
#[derive(Clone, Copy, Debug)]
pub struct NoCommitter;

impl SinkCommitter for NoCommitter {
    type Handle = ();

    async fn commit(&mut self, _: CheckpointId, (): &()) -> Result<Committed, CommitError> {
        Ok(Committed::Already)
    }
}
