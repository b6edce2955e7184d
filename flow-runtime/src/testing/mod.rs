//! For those who build on `flow`: a [harness](Harness) that runs a pipeline step by step, and what their sinks have to
//! keep, as a test.

#[cfg(feature = "failpoints")]
pub mod failpoints;
mod harness;
mod two_phase_commit;

pub use harness::{Harness, Input, Output, Snapshot};
pub use two_phase_commit::{Check, Report, SinkUnderTest, two_phase_commit_suite};
