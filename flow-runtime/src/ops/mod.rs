//! What a job's binary offers besides running: its command line and its plan.

mod arguments;
mod checkpoints;
mod cli;
mod plan;
mod restart;
mod show;
mod signals;
mod txn;

pub use cli::{Entry, run, run_from};
pub use plan::{PlanFormat, render};
