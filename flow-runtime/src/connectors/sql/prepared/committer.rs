//! The committing half: it commits what the writer has prepared.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    PreparedTransaction,
    control::{Control, End},
    live::Live,
    marker,
    owner::Owner,
    settle, sweep,
};
use crate::{
    checkpoint::CheckpointId,
    connectors::sql::{error::SqlError, url::DatabaseUrl},
    error::BoxError,
    failpoint::{Point, reach},
    sink::{CommitError, Committed, SinkCommitter},
};

/// Of how many commits one also deletes the markers that are not needed any more.
const FORGET_EVERY: u32 = 16;
/// How often orphans are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Commits the prepared transactions of one subtask, on a connection of its own.
pub struct PreparedCommitter {
    url: DatabaseUrl,
    owner: Owner,
    subtask: usize,
    live: Arc<Live>,
    control: Option<Control>,
    commits: u32,
    swept: Instant,
}

impl PreparedCommitter {
    pub(super) async fn open(
        url: &DatabaseUrl,
        owner: Owner,
        subtask: usize,
        live: Arc<Live>,
    ) -> Result<Self, BoxError> {
        let mut control = Control::open(url).await?;
        if !marker::owned(&mut control.connection, &owner).await? {
            return Err(owner.fenced().into());
        }
        let (url, control, swept) = (url.clone(), Some(control), Instant::now());
        Ok(PreparedCommitter { url, owner, subtask, live, control, commits: 0, swept })
    }

    /// For an operator, while the job does not run: nobody has to be the owner.
    pub(super) async fn by_hand(url: &DatabaseUrl, owner: Owner, subtask: usize) -> Result<Self, BoxError> {
        let (control, swept) = (Some(Control::open(url).await?), Instant::now());
        Ok(PreparedCommitter {
            url: url.clone(),
            owner,
            subtask,
            live: Arc::default(),
            control,
            commits: 0,
            swept,
        })
    }

    /// Commits on the connection that holds the transaction, if there is one. If that fails the connection is closed, and
    /// the name has to do.
    #[cfg(feature = "mysql")]
    async fn commit_on_holder(&mut self, transaction: &PreparedTransaction) -> bool {
        let Some(mut holder) = self.live.take_holder(transaction.id()) else { return false };
        match holder.batch(&super::mysql::end(transaction.id(), End::Commit)).await {
            Ok(()) => {
                // The driver has to be told that the transaction is over.
                if let Some(spare) = holder.rolled_back().await {
                    self.live.put_spare(spare);
                }
                true
            }
            Err(error) => {
                let error = SqlError::from(error);
                tracing::warn!(sink = self.owner.sink, %error, "committing on another connection");
                false
            }
        }
    }

    #[cfg(not(feature = "mysql"))]
    async fn commit_on_holder(&mut self, _: &PreparedTransaction) -> bool {
        false
    }

    /// What is not urgent, after a commit. It fails for reasons that will show elsewhere if they matter.
    async fn tidy(&mut self, control: &mut Control, newest: &PreparedTransaction) -> Result<(), SqlError> {
        self.commits += 1;
        if self.commits % FORGET_EVERY == 1 {
            marker::forget(&mut control.connection, &newest.marker).await?;
        }
        if self.subtask == 0 && self.swept.elapsed() >= SWEEP_EVERY {
            self.swept = Instant::now();
            sweep::sweep(control, &self.owner).await?;
        }
        Ok(())
    }
}

impl SinkCommitter for PreparedCommitter {
    type Handle = PreparedTransaction;

    async fn commit(
        &mut self,
        checkpoint: CheckpointId,
        transaction: &PreparedTransaction,
    ) -> Result<Committed, CommitError> {
        let mut control = match self.control.take() {
            Some(control) => control,
            None => Control::open(&self.url).await.map_err(|error| CommitError::Retry(error.into()))?,
        };
        // After a failure the connection is not worth keeping.
        let committed = if self.commit_on_holder(transaction).await {
            Committed::Now
        } else {
            settle::commit(&mut control, transaction).await?
        };
        reach(Point::PreparedCommitted);
        self.live.committed(checkpoint.0);
        match self.tidy(&mut control, transaction).await {
            Ok(()) => self.control = Some(control),
            Err(error) => tracing::warn!(sink = self.owner.sink, %error, "could not tidy up after a commit"),
        }
        Ok(committed)
    }

    async fn abort(&mut self, _: CheckpointId, transaction: &PreparedTransaction) -> Result<(), BoxError> {
        // Lets go of it, if it is held.
        drop(self.live.take_holder(transaction.id()));
        let mut control = Control::open(&self.url).await?;
        control.end(transaction.id(), End::Rollback).await?;
        Ok(())
    }
}

impl std::fmt::Debug for PreparedCommitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedCommitter")
            .field("owner", &self.owner)
            .field("subtask", &self.subtask)
            .finish_non_exhaustive()
    }
}
