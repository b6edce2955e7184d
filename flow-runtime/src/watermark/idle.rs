//! The clock by which inputs become idle.

use std::time::Duration;

use crate::time::Clock;

/// The time in which a chain could have read. While what follows holds it up, the clock stands: backpressure is not
/// idleness.
#[derive(Debug)]
pub(crate) struct WaitingClock {
    clock: Clock,
    before: Duration,
    since: Option<Duration>,
}

impl WaitingClock {
    pub(crate) fn running(clock: Clock) -> Self {
        let since = Some(clock.elapsed());
        WaitingClock { clock, before: Duration::ZERO, since }
    }

    pub(crate) fn stop(&mut self) {
        self.before = self.now();
        self.since = None;
    }

    pub(crate) fn go_on(&mut self) {
        self.since.get_or_insert_with(|| self.clock.elapsed());
    }

    pub(crate) fn now(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| self.clock.elapsed().saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn it_stands_while_it_is_stopped() {
        let time = Clock::manual(Timestamp::EPOCH);
        let mut clock = WaitingClock::running(time.clone());
        time.advance(Duration::from_secs(1));
        clock.stop();
        time.advance(Duration::from_secs(2));
        assert_eq!(clock.now(), Duration::from_secs(1));
        clock.go_on();
        time.advance(Duration::from_secs(4));
        assert_eq!(clock.now(), Duration::from_secs(5));
    }
}
