//! Running a job: workers, attempts, signals, and the parts of the checkpoint protocol that need the engine.

mod abort;
mod alarm;
mod attempt;
mod committer;
mod config;
mod control;
mod coordinate;
mod dry;
mod manifest;
mod panics;
mod restart;
mod shared;
mod supervise;
mod tries;

pub(crate) use abort::AbortOnDrop;
pub(crate) use alarm::Alarm;
pub use config::{Config, Retention};
pub use control::{CheckpointCounts, Ending};
pub(crate) use control::{Control, Last};
pub(crate) use dry::{desks, warnings};
pub(crate) use panics::in_user_code;
pub use restart::Restart;
pub(crate) use shared::Shared;
pub(crate) use supervise::Observed;
pub(crate) use supervise::io_runtime;
pub use supervise::{Stop, Summary, run, run_on, run_until};
pub(crate) use tries::Tries;
