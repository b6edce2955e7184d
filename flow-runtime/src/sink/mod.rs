//! Where records go.
//!
//! The worker fills a [`SinkBuffer`]; a writer task and a committer task do all the I/O. Commits run on the
//! committer's own connection and are never queued behind writes.

mod port;
mod task;
mod traits;

pub use crate::checkpoint::CheckpointId;
pub use port::SinkHandle;
pub(crate) use port::SinkPort;
pub use traits::{
    CommitError, Committed, ExactlyOnce, HeldRows, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext,
    SinkWriter, TransactionHandle, Write,
};
