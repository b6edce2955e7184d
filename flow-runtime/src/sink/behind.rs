//! How far the committer may fall behind the writer.

use std::collections::VecDeque;

use crate::checkpoint::CheckpointId;

/// Transactions that may be committed and are not: a server that is away takes none.
const TRANSACTIONS: usize = 64;
/// The bytes of their handles, which may be all the rows of an epoch.
const BYTES: usize = 256 << 20;

/// What a subtask has pre-committed and is not known to be committed.
#[derive(Debug, Default)]
pub(super) struct Behind {
    /// The checkpoint of each, and the size of its handle.
    transactions: VecDeque<(CheckpointId, usize)>,
}

impl Behind {
    pub(super) fn pre_committed(&mut self, checkpoint: CheckpointId, bytes: usize) {
        self.transactions.push_back((checkpoint, bytes));
    }

    /// Whether the writer has to wait. Only what may be committed counts: the rest needs a checkpoint to complete, whose
    /// barrier comes after the records that would wait.
    pub(super) fn too_far(&mut self, completed: CheckpointId, confirmed: CheckpointId) -> bool {
        while self.transactions.front().is_some_and(|(checkpoint, _)| *checkpoint <= confirmed) {
            self.transactions.pop_front();
        }
        let waiting = self.transactions.iter().take_while(|(checkpoint, _)| *checkpoint <= completed);
        let (count, bytes) =
            waiting.fold((0, 0usize), |(count, sum), (_, bytes)| (count + 1, sum.saturating_add(*bytes)));
        count >= TRANSACTIONS || (count > 1 && bytes >= BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_committed_counts() {
        let mut behind = Behind::default();
        for checkpoint in 1..=200 {
            behind.pre_committed(CheckpointId(checkpoint), 10);
        }
        assert!(!behind.too_far(CheckpointId(0), CheckpointId(0)), "no checkpoint is complete");
        assert!(!behind.too_far(CheckpointId(63), CheckpointId(0)));
        assert!(behind.too_far(CheckpointId(64), CheckpointId(0)));
        assert!(!behind.too_far(CheckpointId(64), CheckpointId(1)));
        assert!(!behind.too_far(CheckpointId(200), CheckpointId(200)));
    }

    #[test]
    fn large_handles_count_by_their_size_except_a_single_one() {
        let mut behind = Behind::default();
        behind.pre_committed(CheckpointId(1), 2 * BYTES);
        assert!(!behind.too_far(CheckpointId(1), CheckpointId(0)));
        behind.pre_committed(CheckpointId(2), 1);
        assert!(behind.too_far(CheckpointId(2), CheckpointId(0)));
        assert!(!behind.too_far(CheckpointId(2), CheckpointId(1)));
    }
}
