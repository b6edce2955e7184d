//! The clock by which inputs become idle.

use std::time::{Duration, Instant};

/// The time in which a chain could have read. While what follows holds it up, the clock stands: backpressure is not
/// idleness.
#[derive(Debug)]
pub(crate) struct WaitingClock {
    before: Duration,
    since: Option<Instant>,
}

impl WaitingClock {
    pub(crate) fn running() -> Self {
        WaitingClock { before: Duration::ZERO, since: Some(Instant::now()) }
    }

    pub(crate) fn stop(&mut self) {
        self.before = self.now();
        self.since = None;
    }

    pub(crate) fn go_on(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    pub(crate) fn now(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_while_it_is_stopped() {
        let mut clock = WaitingClock::running();
        clock.stop();
        let then = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(clock.now(), then);
        clock.go_on();
        std::thread::sleep(Duration::from_millis(2));
        assert!(clock.now() > then);
    }
}
