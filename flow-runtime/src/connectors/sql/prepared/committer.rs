//! The committing half: it commits what the writer has prepared.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{PreparedTransaction, control::Control, marker, owner::Owner, settle, sweep, writer::Progress};
use crate::{
    checkpoint::CheckpointId,
    connectors::sql::{error::SqlError, url::DatabaseUrl},
    error::BoxError,
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
    progress: Arc<Progress>,
    control: Option<Control>,
    commits: u32,
    swept: Instant,
}

impl PreparedCommitter {
    pub(super) async fn open(
        url: &DatabaseUrl,
        owner: Owner,
        subtask: usize,
        progress: Arc<Progress>,
    ) -> Result<Self, BoxError> {
        let mut control = Control::open(url).await?;
        if !marker::owned(&mut control.connection, &owner).await? {
            return Err(owner.fenced().into());
        }
        let (url, control, swept) = (url.clone(), Some(control), Instant::now());
        Ok(PreparedCommitter { url, owner, subtask, progress, control, commits: 0, swept })
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
        let committed = settle::commit(&mut control, transaction).await?;
        self.progress.committed.fetch_max(checkpoint.0, Ordering::SeqCst);
        match self.tidy(&mut control, transaction).await {
            Ok(()) => self.control = Some(control),
            Err(error) => tracing::warn!(sink = self.owner.sink, %error, "could not tidy up after a commit"),
        }
        Ok(committed)
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
