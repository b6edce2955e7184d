//! A sink whose job does not run, for an operator who looks after its transactions.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    CommitError, Committed, InDoubt, Recovered, Settlement, Sink, SinkCommitter, SinkContext, Standing,
    decode_handle,
};
use crate::{checkpoint::CheckpointId, error::BoxError};

/// A transaction that a checkpoint carries: subtask, the checkpoint at whose barrier it was pre-committed, and its
/// encoded handle.
pub(crate) type Carried = (usize, CheckpointId, Bytes);

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send + 'a>>;

/// How often to try to commit while the server says that it may work later.
const TRIES: u32 = 5;

/// Settles the transactions of one sink, whatever its types.
pub(crate) trait Desk: Send + Sync {
    /// The uid of the sink's operator.
    fn uid(&self) -> &str;

    /// How a transaction stands outside.
    fn standing<'a>(&'a self, transaction: &'a Carried) -> Answer<'a, Standing>;

    /// Those that the server holds.
    fn in_doubt(&self) -> Answer<'_, Vec<InDoubt>>;

    /// Commits one of the transactions that the checkpoint carries for this sink; those of the same subtask before it
    /// must have been committed.
    fn commit<'a>(&'a self, carried: &'a [Carried], which: usize) -> Answer<'a, Committed>;

    /// Rolls one of them back, if it is not committed.
    fn abort<'a>(&'a self, carried: &'a [Carried], which: usize) -> Answer<'a, ()>;

    /// Settles one that no checkpoint carries.
    fn settle<'a>(&'a self, transaction: &'a InDoubt, settlement: Settlement) -> Answer<'a, ()>;
}

/// A [`Sink`] with the place that it has in the job.
pub(super) struct SinkDesk<S> {
    pub(super) sink: Arc<S>,
    pub(super) cx: SinkContext,
}

impl<S: Sink> SinkDesk<S> {
    async fn committer(
        &self,
        carried: &[Carried],
        which: usize,
    ) -> Result<(S::Committer, Recovered<S::Handle>), BoxError> {
        let mut handles = Vec::new();
        for transaction in carried {
            handles.push(decode::<S>(transaction)?);
        }
        // Each subtask commits its own.
        let cx = SinkContext { subtask: carried[which].0, ..self.cx.clone() };
        let committer = self.sink.open_committer(&cx, &handles).await?;
        Ok((committer, handles.swap_remove(which)))
    }
}

fn decode<S: Sink>((subtask, checkpoint, bytes): &Carried) -> Result<Recovered<S::Handle>, BoxError> {
    let handle = decode_handle(bytes).map_err(|e| {
        format!("the handle of subtask {subtask} at checkpoint {checkpoint} cannot be read: {e}")
    })?;
    Ok(Recovered { subtask: *subtask, checkpoint: *checkpoint, handle })
}

impl<S: Sink> Desk for SinkDesk<S> {
    fn uid(&self) -> &str {
        &self.cx.operator
    }

    fn standing<'a>(&'a self, transaction: &'a Carried) -> Answer<'a, Standing> {
        Box::pin(async move { self.sink.standing(&self.cx, &decode::<S>(transaction)?).await })
    }

    fn in_doubt(&self) -> Answer<'_, Vec<InDoubt>> {
        Box::pin(self.sink.in_doubt(&self.cx))
    }

    fn commit<'a>(&'a self, carried: &'a [Carried], which: usize) -> Answer<'a, Committed> {
        Box::pin(async move {
            let (mut committer, Recovered { checkpoint, handle, .. }) =
                self.committer(carried, which).await?;
            let mut pause = Duration::from_millis(100);
            for tried in 1.. {
                match committer.commit(checkpoint, &handle).await {
                    Ok(committed) => return Ok(committed),
                    Err(CommitError::Retry(cause)) if tried < TRIES => {
                        tracing::warn!("could not commit, trying again in {pause:?}: {cause}");
                        tokio::time::sleep(pause).await;
                        pause *= 2;
                    }
                    Err(CommitError::Retry(cause) | CommitError::Lost(cause)) => return Err(cause),
                }
            }
            unreachable!("the last try returns")
        })
    }

    fn abort<'a>(&'a self, carried: &'a [Carried], which: usize) -> Answer<'a, ()> {
        Box::pin(async move {
            let (mut committer, Recovered { checkpoint, handle, .. }) =
                self.committer(carried, which).await?;
            committer.abort(checkpoint, &handle).await
        })
    }

    fn settle<'a>(&'a self, transaction: &'a InDoubt, settlement: Settlement) -> Answer<'a, ()> {
        Box::pin(self.sink.settle(&self.cx, transaction, settlement))
    }
}
