//! When to look at which key, by its hash.
//!
//! The join looks at a key about once per record, or once per time that a record waits, and nearly all of these times are
//! different ones. So what is due is put on pages of times that are near to each other, and a page is put in order when it
//! has come. What is here can always be made anew from the state.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct Calendar {
    /// A page is of so many milliseconds, as a power of two.
    page_bits: u32,
    /// What is later, by page.
    pages: BTreeMap<i64, Vec<(Timestamp, u64)>>,
    /// The last page that has been opened.
    opened: i64,
    /// What is left of it, the first of it at the end.
    page: Vec<(Timestamp, u64)>,
    /// What has come to a page when it was open, the first of it on top.
    added: BinaryHeap<Reverse<(Timestamp, u64)>>,
    /// Memory to be used again.
    spare: Vec<Vec<(Timestamp, u64)>>,
}

/// Of the shortest page: 64 ms.
const LEAST_PAGE_BITS: u32 = 6;
/// How many pages a record waits, about.
const PAGES: u64 = 8;
/// More memory than that of so many pages is given back.
const SPARE: usize = 4;

impl Calendar {
    /// For what is due after about so many milliseconds.
    pub(super) fn new(wait: u64) -> Self {
        let page_bits = (wait / PAGES).checked_ilog2().unwrap_or(0).max(LEAST_PAGE_BITS);
        Calendar {
            page_bits,
            pages: BTreeMap::new(),
            opened: i64::MIN,
            page: Vec::new(),
            added: BinaryHeap::new(),
            spare: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, time: Timestamp, hash: u64) {
        let page = time.as_millis() >> self.page_bits;
        if page <= self.opened {
            self.added.push(Reverse((time, hash)));
        } else {
            let spare = &mut self.spare;
            self.pages.entry(page).or_insert_with(|| spare.pop().unwrap_or_default()).push((time, hash));
        }
    }

    /// Takes out the next key that is due, with its time.
    #[inline]
    pub(super) fn pop_until(&mut self, until: Timestamp) -> Option<(Timestamp, u64)> {
        loop {
            let (next, added) = (self.page.last().copied(), self.added.peek().map(|Reverse(added)| *added));
            let first = next.into_iter().chain(added).min().filter(|(time, _)| *time <= until);
            if first.is_some() {
                match first == next {
                    true => drop(self.page.pop()),
                    false => drop(self.added.pop()),
                }
                return first;
            }
            if !self.open_next(until) {
                return None;
            }
        }
    }

    /// Some of those that come next, unless others are added that come before them.
    pub(super) fn coming(&self, some: usize) -> &[(Timestamp, u64)] {
        &self.page[self.page.len().saturating_sub(some)..]
    }

    /// Opens the next page, if something on it may be due. Then nothing is left of the page before, all of which was due.
    #[inline(never)]
    fn open_next(&mut self, until: Timestamp) -> bool {
        let last = until.as_millis() >> self.page_bits;
        let Some(first) = self.pages.first_entry().filter(|first| *first.key() <= last) else { return false };
        let (number, mut page) = first.remove_entry();
        page.sort_unstable_by(|a, b| b.cmp(a));
        self.opened = number;
        let before = std::mem::replace(&mut self.page, page);
        if self.spare.len() < SPARE {
            self.spare.push(before);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    proptest! {
        #[test]
        fn what_is_due_comes_in_the_order_of_time(
            wait in 0u64..5_000,
            steps in proptest::collection::vec((0i64..1_500, proptest::collection::vec(-300i64..6_000, 0..8)), 1..40),
        ) {
            let (mut calendar, mut left, mut now) = (Calendar::new(wait), Vec::new(), -2_000);
            for (hash, (forward, times)) in (0..).zip(&steps) {
                for time in times {
                    calendar.push(at(now + time), hash);
                    left.push((at(now + time), hash));
                }
                now += forward;
                left.sort_unstable();
                let due = left.partition_point(|(time, _)| *time <= at(now));
                let expected: Vec<_> = left.drain(..due).collect();
                let found: Vec<_> = std::iter::from_fn(|| calendar.pop_until(at(now))).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn the_ends_of_all_time_are_no_trouble() {
        let mut calendar = Calendar::new(u64::MAX);
        for (hash, time) in (0..).zip([Timestamp::MAX, Timestamp::MIN, at(0)]) {
            calendar.push(time, hash);
        }
        assert_eq!(calendar.pop_until(Timestamp::MIN), Some((Timestamp::MIN, 1)));
        assert_eq!(calendar.pop_until(Timestamp::MIN), None);
        assert_eq!(calendar.pop_until(Timestamp::MAX), Some((at(0), 2)));
        assert_eq!(calendar.pop_until(Timestamp::MAX), Some((Timestamp::MAX, 0)));
        assert_eq!(calendar.pop_until(Timestamp::MAX), None);
    }
}
