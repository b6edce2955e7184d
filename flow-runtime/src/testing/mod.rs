//! For those who build on `flow`: what their sinks have to keep, as a test.

#[cfg(feature = "failpoints")]
pub mod failpoints;
mod two_phase_commit;

pub use two_phase_commit::{Check, Report, SinkUnderTest, two_phase_commit_suite};
