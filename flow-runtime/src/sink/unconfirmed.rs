//! Transactions that are pre-committed and not known to be committed: every checkpoint carries them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::OnceCell;

use super::SinkContext;
use crate::{
    chain::Environment,
    checkpoint::{CheckpointError, CheckpointId, SinkPart},
    failpoint::{Point, reach},
    worker::Tries,
};

/// A handle on its way into checkpoints. Its file is written once and named by all of them; by the first that gets to
/// it, so that one that fails does not leave the next without.
pub(crate) struct Unconfirmed {
    /// At whose barrier it was pre-committed.
    pub(crate) checkpoint: CheckpointId,
    uid: String,
    subtask: usize,
    operator: usize,
    /// Empty once it is written: a handle may be all the rows of an epoch.
    handle: Mutex<Bytes>,
    file: OnceCell<SinkPart>,
}

impl Unconfirmed {
    pub(crate) fn new(checkpoint: CheckpointId, cx: &SinkContext, operator: usize, handle: Vec<u8>) -> Self {
        Unconfirmed {
            checkpoint,
            uid: cx.operator.clone(),
            subtask: cx.subtask,
            operator,
            handle: Mutex::new(handle.into()),
            file: OnceCell::new(),
        }
    }

    /// Writes the handle beside the other parts of its checkpoint, unless it has been written.
    ///
    /// Who waits for another checkpoint that is writing it, and is given up, takes over.
    pub(crate) async fn write(
        &self,
        environment: &Environment,
        tries: Tries,
    ) -> Result<SinkPart, CheckpointError> {
        let write = async || {
            let name = format!("{:016x}-{}-{}-txn", environment.attempt, self.operator, self.subtask);
            let handle = self.handle().clone();
            let put = || environment.store.put_part(self.checkpoint, &name, handle.clone());
            let file = tries.run(put).await?;
            reach(Point::HandleWritten);
            *self.handle() = Bytes::new();
            let (uid, subtask, checkpoint) = (self.uid.clone(), self.subtask, self.checkpoint);
            Ok(SinkPart { uid, subtask, checkpoint, file })
        };
        self.file.get_or_try_init(write).await.cloned()
    }

    fn handle(&self) -> MutexGuard<'_, Bytes> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
