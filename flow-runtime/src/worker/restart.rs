//! When to try again: a pure decision.

use std::time::Duration;

use super::Restart;

/// Counts failures.
#[derive(Debug)]
pub(super) struct Failures {
    strategy: Restart,
    in_a_row: u32,
}

impl Failures {
    pub(super) fn new(strategy: Restart) -> Self {
        Failures { strategy, in_a_row: 0 }
    }

    /// An attempt failed; `progressed` says whether it had completed a checkpoint. Returns the pause before the next
    /// attempt, or `None` when there is to be none.
    pub(super) fn next(&mut self, progressed: bool) -> Option<Duration> {
        match self.strategy {
            Restart::Never => None,
            Restart::FixedDelay { attempts, delay } => {
                self.in_a_row += 1;
                (self.in_a_row <= attempts).then_some(delay)
            }
            Restart::Exponential { attempts, initial, max } => {
                if progressed {
                    self.in_a_row = 0;
                }
                self.in_a_row += 1;
                let doublings = (self.in_a_row - 1).min(31);
                (self.in_a_row <= attempts).then(|| initial.saturating_mul(1 << doublings).min(max))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_never() {
        assert_eq!(Failures::new(Restart::Never).next(true), None);
    }

    #[test]
    fn a_fixed_delay_is_given_so_many_times() {
        let delay = Duration::from_secs(1);
        let mut failures = Failures::new(Restart::FixedDelay { attempts: 2, delay });
        assert_eq!([(); 3].map(|()| failures.next(true)), [Some(delay), Some(delay), None]);
    }

    #[test]
    fn the_pause_doubles_up_to_its_limit_and_starts_over_after_progress() {
        let (initial, max) = (Duration::from_millis(100), Duration::from_millis(350));
        let mut failures = Failures::new(Restart::Exponential { attempts: 3, initial, max });
        assert_eq!(failures.next(false), Some(initial));
        assert_eq!(failures.next(false), Some(initial * 2));
        assert_eq!(failures.next(false), Some(max));
        assert_eq!(failures.next(true), Some(initial));
        assert_eq!([(); 3].map(|()| failures.next(false)), [Some(initial * 2), Some(max), None]);
    }
}
