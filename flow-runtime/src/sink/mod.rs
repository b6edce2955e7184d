//! Where records go.
//!
//! The worker fills a [`SinkBuffer`]; a writer task and a committer task do all the I/O. Commits run on the
//! committer's own connection and are never queued behind writes.

mod behind;
mod desk;
pub(crate) mod handle;
pub(crate) mod pending;
mod port;
mod state;
mod task;
mod traits;
mod two_phase;
mod unconfirmed;

pub use crate::checkpoint::CheckpointId;
pub(crate) use desk::{Carried, Desk};
pub use handle::{TransactionHandle, decode_handle, describe_handle, encode_handle};
pub use port::{Filling, SinkHandle};
pub(crate) use port::{SinkParts, SinkPort};
pub use state::SinkState;
pub(crate) use state::States;
pub use traits::{
    CommitError, Committed, ExactlyOnce, HeldRows, InDoubt, Recovered, Settlement, Sink, SinkBuffer,
    SinkCommitter, SinkContext, SinkWriter, Standing, Write,
};
pub use two_phase::{Records, Transaction, TwoPhaseCommit, TwoPhaseCommitter, TwoPhaseWriter};
