//! What to do when an attempt fails: a pure decision.

use std::{collections::VecDeque, time::Duration};

/// What to do when an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Restart {
    /// Give up.
    Never,
    /// Try again after `delay`, `attempts` times in all.
    FixedDelay {
        /// How many times.
        attempts: u32,
        /// How long to wait before each.
        delay: Duration,
    },
    /// Wait longer before each new attempt, and start over once the job has got on.
    Exponential {
        /// How many times in a row. The row ends, and the pause is the first one again, when an attempt had completed
        /// a checkpoint and had run for `reset_after`.
        attempts: u32,
        /// The first pause.
        initial: Duration,
        /// The longest pause.
        max: Duration,
        /// How many times longer each pause is than the one before; at least 1.
        multiplier: f64,
        /// How long an attempt has to run before its failure counts as the first again.
        reset_after: Duration,
    },
    /// Try again after `delay`, however often, unless the job fails too often within a while.
    FailureRate {
        /// How many failures within `per` to bear.
        max: u32,
        /// The while.
        per: Duration,
        /// How long to wait before each new attempt.
        delay: Duration,
    },
}

impl Restart {
    /// How often [`FixedDelay`](Self::FixedDelay) and [`Exponential`](Self::Exponential) try where nothing is said.
    pub const ATTEMPTS: u32 = 10;
    /// How long [`FixedDelay`](Self::FixedDelay) and [`FailureRate`](Self::FailureRate) wait where nothing is said.
    pub const DELAY: Duration = Duration::from_secs(1);
    /// How long [`Exponential`](Self::Exponential) waits at first where nothing is said.
    pub const INITIAL: Duration = Duration::from_millis(100);
    /// How long [`Exponential`](Self::Exponential) waits at most where nothing is said.
    pub const MAX: Duration = Duration::from_secs(60);
    /// How the pauses of [`Exponential`](Self::Exponential) grow where nothing is said.
    pub const MULTIPLIER: f64 = 2.0;
    /// With [`Exponential`](Self::Exponential), and where nothing is said, any completed checkpoint ends the row.
    pub const RESET_AFTER: Duration = Duration::ZERO;

    /// Whether the numbers make sense.
    pub(crate) fn check(&self) -> Result<(), String> {
        match *self {
            Restart::Exponential { multiplier, .. } if !(1.0..=1e6).contains(&multiplier) => {
                Err(format!("the multiplier {multiplier} of the restart strategy must be at least 1"))
            }
            Restart::Exponential { initial, max, .. } if max < initial => Err(format!(
                "the longest pause of the restart strategy, {max:?}, is shorter than the first, {initial:?}"
            )),
            Restart::FailureRate { per: Duration::ZERO, .. } => {
                Err("a failure rate is so many failures per a time above 0".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Default for Restart {
    /// Exponential, with what holds where nothing is said.
    fn default() -> Self {
        Restart::Exponential {
            attempts: Self::ATTEMPTS,
            initial: Self::INITIAL,
            max: Self::MAX,
            multiplier: Self::MULTIPLIER,
            reset_after: Self::RESET_AFTER,
        }
    }
}

/// How an attempt went before it failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    /// When, counted from any fixed moment.
    pub(super) at: Duration,
    /// How long it had run.
    pub(super) ran: Duration,
    /// Whether it had completed a checkpoint.
    pub(super) progressed: bool,
}

/// Counts failures.
#[derive(Debug)]
pub(super) struct Failures {
    strategy: Restart,
    in_a_row: u32,
    /// When, as far as a failure rate is concerned with them.
    recent: VecDeque<Duration>,
}

impl Failures {
    pub(super) fn new(strategy: Restart) -> Self {
        Failures { strategy, in_a_row: 0, recent: VecDeque::new() }
    }

    /// An attempt failed. Returns the pause before the next, or `None` when there is to be none.
    pub(super) fn next(&mut self, failed: Failed) -> Option<Duration> {
        self.in_a_row = self.in_a_row.saturating_add(1);
        match self.strategy {
            Restart::Never => None,
            Restart::FixedDelay { attempts, delay } => (self.in_a_row <= attempts).then_some(delay),
            Restart::Exponential { attempts, initial, max, multiplier, reset_after } => {
                if failed.progressed && failed.ran >= reset_after {
                    self.in_a_row = 1;
                }
                let factor = multiplier.powi(i32::try_from(self.in_a_row - 1).unwrap_or(i32::MAX));
                let pause = Duration::try_from_secs_f64(initial.as_secs_f64() * factor);
                (self.in_a_row <= attempts).then(|| pause.map_or(max, |pause| pause.min(max)))
            }
            Restart::FailureRate { max, per, delay } => {
                self.recent.push_back(failed.at);
                while self.recent.front().is_some_and(|at| at.saturating_add(per) <= failed.at) {
                    self.recent.pop_front();
                }
                (self.recent.len() <= max as usize).then_some(delay)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn quick() -> Failed {
        Failed { at: Duration::ZERO, ran: Duration::ZERO, progressed: false }
    }

    #[test]
    fn never_is_never() {
        assert_eq!(Failures::new(Restart::Never).next(Failed { progressed: true, ..quick() }), None);
    }

    #[test]
    fn a_fixed_delay_is_given_so_many_times() {
        let delay = ms(1000);
        let mut failures = Failures::new(Restart::FixedDelay { attempts: 2, delay });
        let good = Failed { progressed: true, ..quick() };
        assert_eq!([(); 3].map(|()| failures.next(good)), [Some(delay), Some(delay), None]);
    }

    #[test]
    fn the_pause_grows_up_to_its_limit_and_starts_over_after_progress() {
        let mut failures = Failures::new(Restart::Exponential {
            attempts: 4,
            initial: ms(100),
            max: ms(200),
            multiplier: 1.5,
            reset_after: ms(5000),
        });
        assert_eq!([(); 3].map(|()| failures.next(quick())), [100, 150, 200].map(|n| Some(ms(n))));
        let good = Failed { ran: ms(5000), progressed: true, ..quick() };
        assert_eq!(failures.next(good), Some(ms(100)));
        assert_eq!(failures.next(Failed { ran: ms(4999), ..good }), Some(ms(150)), "not long enough");
        assert_eq!(failures.next(Failed { progressed: false, ..good }), Some(ms(200)), "without progress");
        assert_eq!([(); 2].map(|()| failures.next(quick())), [Some(ms(200)), None]);
    }

    #[test]
    fn the_pause_stays_finite() {
        let mut failures = Failures::new(Restart::Exponential {
            attempts: u32::MAX,
            initial: ms(100),
            max: Duration::MAX,
            multiplier: 1e6,
            reset_after: Duration::ZERO,
        });
        for _ in 0..1000 {
            assert!(failures.next(quick()).is_some());
        }
    }

    #[test]
    fn a_failure_rate_forgets_what_is_long_ago() {
        let strategy = Restart::FailureRate { max: 2, per: ms(1000), delay: ms(10) };
        let mut failures = Failures::new(strategy);
        let mut at = |n| failures.next(Failed { at: ms(n), ..quick() });
        for n in [0, 900, 1000, 1900, 2900] {
            assert_eq!(at(n), Some(ms(10)), "at {n}");
        }
        assert_eq!(at(3000), Some(ms(10)));
        assert_eq!(at(3899), None, "the third since 2900");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let Restart::Exponential { attempts, initial, max, reset_after, .. } = Restart::default() else {
            unreachable!("it is exponential")
        };
        let with = |multiplier, max| Restart::Exponential { attempts, initial, max, multiplier, reset_after };
        for bad in [with(0.5, max), with(f64::NAN, max), with(2.0, ms(1))] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert!(Restart::FailureRate { max: 1, per: Duration::ZERO, delay: ms(1) }.check().is_err());
        assert!(Restart::default().check().is_ok());
    }
}
