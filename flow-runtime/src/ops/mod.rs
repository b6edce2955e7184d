//! What a job's binary offers besides running: its command line and its plan.

mod arguments;
mod cli;
mod plan;
mod restart;
mod signals;

pub use cli::{Entry, run};
pub use plan::{PlanFormat, render};
