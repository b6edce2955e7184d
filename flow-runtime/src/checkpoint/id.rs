//! The number of a checkpoint.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a checkpoint, and of the epoch of records that it ends. Grows by one, across restores too; 0 is
/// "before the first".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointId(pub u64);

impl CheckpointId {
    /// The one after this.
    #[must_use]
    pub fn next(self) -> Self {
        CheckpointId(self.0 + 1)
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
