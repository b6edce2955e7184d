//! Running a job: workers, attempts, signals, and the parts of the checkpoint protocol that need the engine.

mod abort;
mod alarm;
mod attempt;
mod committer;
mod config;
mod control;
mod manifest;
mod panics;
mod restart;
mod shared;
mod supervise;

pub(crate) use abort::AbortOnDrop;
pub(crate) use alarm::Alarm;
pub use config::{Config, Restart};
pub use control::Ending;
pub(crate) use control::{Control, Last};
pub(crate) use panics::in_user_code;
pub(crate) use shared::Shared;
pub use supervise::{Stop, Summary, run, run_until};
