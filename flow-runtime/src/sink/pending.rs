//! Which transactions a checkpoint has to carry, and which may be committed. Facts in, decision out: no I/O.

use std::collections::VecDeque;

use super::CheckpointId;

/// The transactions of a subtask that are pre-committed and not known to be committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Carried<T> {
    unconfirmed: VecDeque<(CheckpointId, T)>,
}

impl<T: Clone> Carried<T> {
    pub(crate) fn new() -> Self {
        Carried { unconfirmed: VecDeque::new() }
    }

    /// Ends an epoch. Its checkpoint has to hold what this returns: also what former ones pre-committed, for they may
    /// have failed, or their commits may have been lost.
    pub(crate) fn barrier(
        &mut self,
        checkpoint: CheckpointId,
        pre_committed: Option<T>,
        confirmed: CheckpointId,
    ) -> Vec<T> {
        while self.unconfirmed.front().is_some_and(|(id, _)| *id <= confirmed) {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.extend(pre_committed.map(|transaction| (checkpoint, transaction)));
        self.unconfirmed.iter().map(|(_, transaction)| transaction.clone()).collect()
    }
}

/// The transactions of a subtask that wait for their commit, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Commits<H> {
    waiting: VecDeque<(CheckpointId, H)>,
}

impl<H> Commits<H> {
    pub(crate) fn new() -> Self {
        Commits { waiting: VecDeque::new() }
    }

    /// This one was pre-committed at the barrier of `checkpoint`.
    pub(crate) fn pre_committed(&mut self, checkpoint: CheckpointId, handle: H) {
        self.waiting.push_back((checkpoint, handle));
    }

    /// The next to commit, when every checkpoint up to `complete` is complete or carried by one that is.
    pub(crate) fn next(&self, complete: CheckpointId) -> Option<(CheckpointId, &H)> {
        self.waiting.front().filter(|(id, _)| *id <= complete).map(|(id, handle)| (*id, handle))
    }

    /// [`next`](Self::next) is committed.
    pub(crate) fn committed(&mut self) {
        self.waiting.pop_front();
    }
}
