//! The clock that processing time is read from.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{Timestamp, millis};

/// Where a job reads the time from: the clock of this machine, or in a test one that moves only when told to.
///
/// Everything in a job that means processing time goes by this one clock: processing-time timers and triggers,
/// idleness, limits on timestamps ahead, and the timeouts and pauses of asynchronous I/O. Checkpoints, restarts and
/// connectors go by the machine's. Clones are the same clock.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::time::{Clock, Timestamp};
///
/// let clock = Clock::manual(Timestamp::from_millis(1_000));
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.now(), Timestamp::from_millis(6_000));
/// ```
#[derive(Clone)]
pub struct Clock(Kind);

#[derive(Clone)]
enum Kind {
    System { began: Instant },
    Manual(Arc<Manual>),
}

struct Manual {
    began: Timestamp,
    now: watch::Sender<Timestamp>,
    /// When those are to be woken who sleep by it, as long as nothing has come of it.
    sleepers: Mutex<BTreeMap<(Timestamp, u64), ()>>,
    /// Who wants to know when it has moved.
    listeners: Mutex<Vec<Weak<dyn Fn() + Send + Sync>>>,
}

/// Is called when a clock moves, as long as it lives.
pub(crate) type Listener = Arc<dyn Fn() + Send + Sync>;

impl Clock {
    /// The clock of this machine.
    #[must_use]
    pub fn system() -> Self {
        Clock(Kind::System { began: Instant::now() })
    }

    /// A clock that stands at this time until it is told to [`advance`](Self::advance).
    #[must_use]
    pub fn manual(at: Timestamp) -> Self {
        let now = watch::Sender::new(at);
        Clock(Kind::Manual(Arc::new(Manual {
            began: at,
            now,
            sleepers: Mutex::default(),
            listeners: Mutex::default(),
        })))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::System { .. } => Timestamp::now(),
            Kind::Manual(manual) => *manual.now.borrow(),
        }
    }

    /// Moves a manual clock forward, and wakes whatever in running jobs has waited for that. Without effect on the
    /// machine's.
    pub fn advance(&self, by: Duration) {
        let Kind::Manual(manual) = &self.0 else { return };
        manual.now.send_modify(|now| *now = *now + by);
        manual.tell();
    }

    /// Whether it moves only when told to.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        matches!(self.0, Kind::Manual(_))
    }

    /// For spans of time: how long it has run. Never goes back, whatever becomes of the machine's calendar.
    pub(crate) fn elapsed(&self) -> Duration {
        match &self.0 {
            Kind::System { began } => began.elapsed(),
            Kind::Manual(manual) => manual.now.borrow().since(manual.began),
        }
    }

    /// Waits for so long, as [`sleep`](Self::sleep) does. Who waits by a manual clock counts as [due](Self::is_due) until
    /// what it gives is dropped.
    pub(crate) async fn alarm(&self, span: Duration) -> Option<Sleep> {
        match &self.0 {
            Kind::System { .. } => {
                tokio::time::sleep(span).await;
                None
            }
            Kind::Manual(manual) => {
                let mut sleep = Sleep::begin(manual, span);
                sleep.end().await;
                Some(sleep)
            }
        }
    }

    /// Whether somebody's time has come who has not done yet what it has waited for.
    pub(crate) fn is_due(&self) -> bool {
        match &self.0 {
            Kind::System { .. } => false,
            Kind::Manual(manual) => {
                let now = *manual.now.borrow();
                manual.sleepers().first_key_value().is_some_and(|((until, _), ())| *until <= now)
            }
        }
    }

    /// Waits for so long, on tokio.
    pub async fn sleep(&self, span: Duration) {
        match &self.0 {
            Kind::System { .. } => tokio::time::sleep(span).await,
            Kind::Manual(manual) => {
                let mut sleep = Sleep::begin(manual, span);
                sleep.end().await;
            }
        }
    }

    /// Calls the listener after each move of a manual clock.
    pub(crate) fn listen(&self, listener: &Listener) {
        if let Kind::Manual(manual) = &self.0 {
            let mut listeners = manual.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.push(Arc::downgrade(listener));
        }
    }
}

impl Manual {
    fn sleepers(&self) -> MutexGuard<'_, BTreeMap<(Timestamp, u64), ()>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| match listener.upgrade() {
            Some(listener) => {
                listener();
                true
            }
            None => false,
        });
    }
}

/// Somebody who waits by a manual clock.
pub(crate) struct Sleep {
    manual: Arc<Manual>,
    until: (Timestamp, u64),
    moves: watch::Receiver<Timestamp>,
}

impl Sleep {
    fn begin(manual: &Arc<Manual>, span: Duration) -> Self {
        let moves = manual.now.subscribe();
        // A part of a millisecond would never be reached.
        let until = moves.borrow().plus_millis(millis(span));
        let mut sleepers = manual.sleepers();
        let number =
            sleepers.range((until, 0)..=(until, u64::MAX)).next_back().map_or(0, |((_, n), ())| n + 1);
        sleepers.insert((until, number), ());
        drop(sleepers);
        Sleep { manual: Arc::clone(manual), until: (until, number), moves }
    }

    async fn end(&mut self) {
        let until = self.until.0;
        // The sender lives in the clock.
        let _ = self.moves.wait_for(|now| *now >= until).await;
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.manual.sleepers().remove(&self.until);
        if *self.moves.borrow() >= self.until.0 {
            self.manual.tell();
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_manual() { "manual" } else { "system" };
        write!(f, "Clock({name}, {})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn who_sleeps_by_a_manual_clock_wakes_when_it_has_moved_far_enough() {
        let clock = Clock::manual(Timestamp::from_millis(-500));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep(s(3)).await;
                clock.elapsed()
            }
        });
        tokio::task::yield_now().await;
        clock.advance(s(2));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(s(1));
        assert_eq!(sleeper.await.unwrap(), s(3));
        assert_eq!(clock.now(), Timestamp::from_millis(2_500));
    }

    #[test]
    fn listeners_are_called_as_long_as_they_live() {
        let clock = Clock::manual(Timestamp::EPOCH);
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let listener: Listener = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        clock.listen(&listener);
        clock.clone().advance(s(1));
        clock.advance(s(1));
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        drop(listener);
        clock.advance(s(1));
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn the_system_s_goes_by_itself() {
        let clock = Clock::default();
        let before = clock.elapsed();
        clock.advance(s(1_000));
        assert!(clock.now().since(Timestamp::now()) < s(500), "it cannot be moved");
        while clock.elapsed() == before {}
    }
}
