//! Asynchronous I/O: a closure gives a future for each record, the futures run on tokio, and what they give goes on
//! through the pipeline.
//!
//! Records go into a queue where they come. After each batch the chain starts what there is room for, and emits
//! what has been answered; a future that is done wakes the chain. What is under way at a barrier is operator state: a
//! restored job asks for it again.

mod answer;
mod handle;
mod link;
mod lookup;
mod queue;
mod retry;

pub use answer::{AnswerFallible, AnswerPlain, Answering, Certain, Fallible};
pub(crate) use handle::HoldsBack;
pub use handle::{Asynchronous, AsynchronousMut};
pub(crate) use link::Link;
pub use lookup::{Cached, Looking, Lookup, look_up};
pub use queue::{Done, UnderWay};
pub use retry::{Retry, TimedOut, exponential, fixed_delay};

use std::time::Duration;

/// How an operator asks.
#[derive(Clone, Debug)]
pub struct Settings {
    ordered: bool,
    capacity: usize,
    timeout: Duration,
    retry: Retry,
    /// Whether a record without an answer in time is an error, or a value of the pipeline's own.
    late_value: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            ordered: true,
            capacity: 100,
            timeout: Duration::from_secs(60),
            retry: Retry::never(),
            late_value: false,
        }
    }
}

impl Settings {
    /// Answers come out in the order of the records, 100 are under way at most, each may take a minute, and none is asked
    /// for twice.
    #[must_use]
    pub fn new() -> Self {
        Settings::default()
    }

    /// Answers come out as they come, between two watermarks.
    #[must_use]
    pub fn unordered(mut self) -> Self {
        self.ordered = false;
        self
    }

    /// Answers come out in the order of their records, which they do unless something else is said.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// How many records of a subtask are under way at most.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What to do when one fails.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// The pipeline has a value for records that are not answered in time.
    #[must_use]
    pub fn late_value(mut self) -> Self {
        self.late_value = true;
        self
    }

    /// What makes no sense.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.capacity == 0 {
            return Err("a capacity of 0: at least one record has to be under way".to_owned());
        }
        if self.timeout.is_zero() {
            return Err("a timeout of no time: no future is done as soon as it begins".to_owned());
        }
        Ok(())
    }
}
