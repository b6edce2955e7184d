//! Splits that are ahead of the others wait: otherwise windows hold all that these bring, until the slowest has come.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use crate::time::{Timestamp, Watermark, millis};

/// How long a source whose splits wait for those of other subtasks does before it looks again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How far the subtasks of a source have come: each the least of its splits.
#[derive(Debug)]
pub(crate) struct Positions(Vec<AtomicI64>);

/// Nothing is known yet of some split.
const UNKNOWN: i64 = i64::MIN;
/// Nobody has to wait for this subtask.
const NONE: i64 = i64::MAX;

impl Positions {
    pub(crate) fn of(subtasks: usize) -> Self {
        Positions((0..subtasks).map(|_| AtomicI64::new(UNKNOWN)).collect())
    }
}

/// Says how far splits may go.
#[derive(Debug)]
pub(crate) struct Aligner {
    span: i64,
    subtask: usize,
    positions: Arc<Positions>,
    /// The first watermark that was seen, from which splits may go on by the span as long as others are unknown.
    first: Option<i64>,
}

/// Which splits of a subtask are to wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) splits: BTreeSet<String>,
    /// Whether these are all that are not read to their end.
    pub(crate) all: bool,
}

impl Aligner {
    pub(crate) fn new(span: Duration, subtask: usize, positions: Arc<Positions>) -> Self {
        Aligner { span: millis(span), subtask, positions, first: None }
    }

    /// Up to which watermark splits may be read, given those of this subtask that are not idle or read to their end.
    ///
    /// A split with the least of all watermarks is never held up, so that there is always one that goes on.
    pub(crate) fn limit(&mut self, watermarks: impl Iterator<Item = Option<Watermark>>) -> Timestamp {
        let mut own = NONE;
        for watermark in watermarks {
            let at = watermark.map_or(UNKNOWN, |watermark| watermark.timestamp().as_millis());
            if at > UNKNOWN {
                self.first = Some(self.first.map_or(at, |first| first.min(at)));
            }
            own = own.min(at);
        }
        let Positions(all) = &*self.positions;
        all[self.subtask].store(own, Ordering::Relaxed);
        let least = all.iter().map(|position| position.load(Ordering::Relaxed)).min().unwrap_or(NONE);
        let from = match least {
            UNKNOWN => self.first.unwrap_or(NONE),
            least => least,
        };
        Timestamp::from_millis(from.saturating_add(self.span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Option<Watermark> {
        Some(Watermark::new(Timestamp::from_millis(ms)))
    }

    fn aligners(n: usize) -> Vec<Aligner> {
        let positions = Arc::new(Positions::of(n));
        (0..n)
            .map(|subtask| Aligner::new(Duration::from_millis(30), subtask, Arc::clone(&positions)))
            .collect()
    }

    fn limit(aligner: &mut Aligner, watermarks: &[Option<Watermark>]) -> i64 {
        aligner.limit(watermarks.iter().copied()).as_millis()
    }

    #[test]
    fn the_slowest_of_all_subtasks_says_how_far_the_others_may_go() {
        let mut a = aligners(2);
        assert_eq!(limit(&mut a[0], &[at(10), at(100)]), 40, "of the other one nothing is known");
        assert_eq!(limit(&mut a[1], &[at(5)]), 35);
        assert_eq!(limit(&mut a[0], &[at(10), at(100)]), 35);
        assert_eq!(limit(&mut a[1], &[at(60)]), 40);
        assert_eq!(limit(&mut a[0], &[at(70), at(100)]), 90);
    }

    #[test]
    fn as_long_as_a_split_is_unknown_the_others_go_on_from_their_first() {
        let mut a = aligners(1);
        assert_eq!(limit(&mut a[0], &[None, None]), i64::MAX, "nobody is ahead");
        assert_eq!(limit(&mut a[0], &[at(7), None]), 37);
        assert_eq!(limit(&mut a[0], &[at(36), None]), 37);
        assert_eq!(limit(&mut a[0], &[at(36), at(50)]), 66);
    }

    #[test]
    fn nobody_waits_for_what_is_idle_or_over() {
        let mut a = aligners(2);
        assert_eq!(limit(&mut a[1], &[]), i64::MAX);
        assert_eq!(limit(&mut a[0], &[at(10)]), 40);
        assert_eq!(limit(&mut a[0], &[]), i64::MAX);
    }
}
