//! Watermarks: how far event time has come, from the source to the windows.
//!
//! A [`WatermarkStrategy`] says what can be concluded from the timestamps of records. Each split has a generator of its
//! own; what a subtask says is the minimum over its splits, and what an operator goes by is the minimum over what its
//! senders say (`minimum`).

mod alignment;
mod convert;
mod generators;
mod idle;
mod ingestion;
mod minimum;
mod strategy;

pub(crate) use alignment::{Aligner, LOOK_AGAIN, Positions, Waiting};
pub use convert::{IntoTimestamp, Stamp};
pub(crate) use generators::{Generating, SplitRuns};
pub use generators::{Stamping, Watermarks};
pub(crate) use idle::WaitingClock;
pub use ingestion::{Entering, Ingestion, ingestion};
pub(crate) use minimum::{Mark, Minimum, Signal};
pub use strategy::{
    BoundedOutOfOrderness, Monotonous, Punctuated, Watched, WatermarkGenerator, WatermarkStrategy, bounded,
    monotonous, punctuated,
};
