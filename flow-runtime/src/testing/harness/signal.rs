//! What a test waits on: everything that happens to its job.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long nothing is looked at, at most.
const LOOK: Duration = Duration::from_millis(5);

/// Counts what happens. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Signal(Arc<(Mutex<u64>, Condvar)>);

impl Signal {
    /// Something has happened.
    pub(super) fn ring(&self) {
        let (count, changed) = &*self.0;
        *count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        changed.notify_all();
    }

    /// Waits until there is an answer, which is looked for whenever something has happened in the job, and every few
    /// milliseconds, since it may be about something outside.
    pub(super) fn wait<R>(&self, limit: Duration, mut answer: impl FnMut() -> Option<R>) -> Option<R> {
        let deadline = Instant::now() + limit;
        let (count, changed) = &*self.0;
        loop {
            let seen = *count.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(answer) = answer() {
                return Some(answer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let count = count.lock().unwrap_or_else(PoisonError::into_inner);
            drop(changed.wait_timeout_while(count, left.min(LOOK), |count| *count == seen));
        }
    }
}
