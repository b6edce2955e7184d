//! What one attempt of a job shares among its workers.

use std::sync::Arc;

use crate::{
    checkpoint::{CheckpointError, CheckpointId, Compression, Restored, Store},
    state::{KeyGroups, OperatorPort, Redistribution, Share},
    time::Clock,
    worker::{Control, Shared},
};

/// What an attempt has, and where it goes on from.
pub(crate) struct Environment {
    pub(crate) job: String,
    pub(crate) parallelism: usize,
    pub(crate) max_parallelism: u32,
    pub(crate) aligned: bool,
    /// Whether a checkpoint is there to go back to: an at-most-once job ends its epochs for the sinks alone.
    pub(crate) goes_back: bool,
    pub(crate) attempt: u64,
    pub(crate) control: Arc<Control>,
    pub(crate) tokio: tokio::runtime::Handle,
    /// What processing time is read from.
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) compression: Compression,
    pub(crate) restored: Option<Restored>,
    /// The checkpoint before the first epoch of this attempt.
    pub(crate) last: CheckpointId,
    pub(crate) shared: Shared,
}

impl Environment {
    pub(crate) fn first_epoch(&self) -> CheckpointId {
        self.last.next()
    }

    pub(crate) fn key_groups(&self, parallelism: usize) -> KeyGroups {
        KeyGroups { max_parallelism: self.max_parallelism, parallelism: parallelism as u32 }
    }

    /// Gives a subtask (of an operator, at a parallelism) its share of a list that the restored checkpoint holds.
    pub(crate) fn restore_list(
        &self,
        (uid, subtask, parallelism): (&str, usize, usize),
        name: &str,
        redistribution: Redistribution,
        port: &dyn OperatorPort,
    ) -> Result<(), CheckpointError> {
        let Some(restored) = &self.restored else { return Ok(()) };
        let was = restored.manifest.operator(uid).map(|operator| operator.parallelism);
        let mut parts = restored.operator_state(uid, name);
        let share = match redistribution {
            Redistribution::Even if was == Some(parallelism) => {
                parts.retain(|(of, _)| *of == subtask);
                Share::All
            }
            Redistribution::Even => Share::Of(subtask, parallelism),
            Redistribution::Union | Redistribution::Broadcast => Share::All,
        };
        let parts: Vec<_> = parts.into_iter().map(|(_, items)| items).collect();
        port.restore(&parts, share)
    }

    /// Whether a subtask's list is part of checkpoints: where all hold the same, one stores it.
    pub(crate) fn keeps(&self, redistribution: Redistribution, subtask: usize) -> bool {
        self.goes_back && (redistribution != Redistribution::Broadcast || subtask == 0)
    }
}
