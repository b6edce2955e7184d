//! Asking again.

use std::{fmt, rc::Rc, time::Duration};

use crate::error::BoxError;

/// When to ask again for a record whose future has failed or has taken too long, and how often.
#[derive(Clone)]
pub struct Retry {
    times: u32,
    delay: Duration,
    /// What each delay is of the one before it.
    factor: u32,
    longest: Duration,
    when: Option<Rc<When>>,
}

type When = dyn Fn(&BoxError) -> bool;

/// Asks up to so many times again, each time after the same delay.
///
/// In a pipeline: `.retry(fixed_delay(3, "100ms"))`.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::async_io::fixed_delay;
/// let retry = fixed_delay(3, Duration::from_millis(100));
/// ```
#[must_use]
pub fn fixed_delay(times: u32, delay: Duration) -> Retry {
    Retry { times, delay, factor: 1, longest: delay, when: None }
}

/// Asks up to so many times again, first after this delay and then after twice the delay before, up to a minute unless
/// [`up_to`](Retry::up_to) says something else.
///
/// In a pipeline: `.retry(exponential(5, "100ms").up_to("10s"))`.
#[must_use]
pub fn exponential(times: u32, first: Duration) -> Retry {
    Retry { times, delay: first, factor: 2, longest: Duration::from_secs(60), when: None }
}

impl Retry {
    /// Asks once and for all.
    #[must_use]
    pub(crate) fn never() -> Self {
        fixed_delay(0, Duration::ZERO)
    }

    /// No delay is longer than this.
    #[must_use]
    pub fn up_to(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Asks again only for errors of which this is true, such as those of a server that is away. That a future has taken
    /// too long is an error as well, a [`TimedOut`].
    #[must_use]
    pub fn when(mut self, when: impl Fn(&BoxError) -> bool + 'static) -> Self {
        self.when = Some(Rc::new(when));
        self
    }

    /// How long to wait after this error, if there is another attempt after `attempts`.
    pub(crate) fn after(&self, attempts: u32, error: &BoxError) -> Option<Duration> {
        if attempts > self.times || self.when.as_ref().is_some_and(|when| !when(error)) {
            return None;
        }
        let factor = self.factor.saturating_pow(attempts - 1);
        Some(self.delay.saturating_mul(factor).min(self.longest))
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("times", &self.times)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// A future had no answer within the timeout of its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {}", humantime::format_duration(self.0))]
pub struct TimedOut(pub Duration);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn delays(retry: &Retry) -> Vec<Duration> {
        let error = BoxError::from("away");
        (1..).map_while(|attempts| retry.after(attempts, &error)).collect()
    }

    #[test]
    fn delays_are_fixed_or_grow() {
        assert!(delays(&Retry::never()).is_empty());
        assert_eq!(delays(&fixed_delay(2, ms(7))), [ms(7), ms(7)]);
        assert_eq!(delays(&exponential(5, ms(10)).up_to(ms(50))), [ms(10), ms(20), ms(40), ms(50), ms(50)]);
        assert_eq!(delays(&exponential(100, ms(1000))).last(), Some(&ms(60_000)), "without overflow");
    }

    #[test]
    fn not_every_error_is_worth_another_attempt() {
        let retry = fixed_delay(2, ms(7)).when(|error| error.is::<TimedOut>());
        assert!(retry.after(1, &"wrong".into()).is_none());
        assert_eq!(retry.after(1, &TimedOut(ms(1)).into()), Some(ms(7)));
    }
}
