//! Checkpoints: what they hold, where they are kept, and when they are complete.

mod id;

pub use id::CheckpointId;

/// Why a checkpoint could not be written, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {}

impl CheckpointError {
    pub(crate) fn restartable(&self) -> bool {
        true
    }
}
