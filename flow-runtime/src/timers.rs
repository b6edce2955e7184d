//! Timers: those of a key or a window, which are part of the state, and the index of those that are due, which is not.

use std::{cell::Cell, collections::BTreeMap};

use crate::time::Timestamp;

/// The timers of a key, or of a window of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timers {
    pub(crate) event: Times,
    pub(crate) processing: Times,
}

/// Some times, each once: none and one need no memory elsewhere, and nearly all windows have one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Times {
    #[default]
    None,
    One(Timestamp),
    /// Two or more, the last one first. Boxed, since they are rare and there are two of these per window.
    #[allow(clippy::box_collection)]
    Many(Box<Vec<Timestamp>>),
}

impl Times {
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<Timestamp> {
        match self {
            Times::None => None,
            Times::One(time) => Some(*time),
            Times::Many(times) => times.last().copied(),
        }
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, time: Timestamp) {
        match self {
            Times::One(one) if *one == time => {}
            Times::None => *self = Times::One(time),
            _ => self.insert_more(time),
        }
    }

    #[cold]
    fn insert_more(&mut self, time: Timestamp) {
        if let Times::One(one) = *self {
            *self = Times::Many(Box::new(vec![one]));
        }
        if let Times::Many(times) = self
            && let Err(at) = times.binary_search_by(|other| time.cmp(other))
        {
            times.insert(at, time);
        }
    }

    pub(crate) fn remove(&mut self, time: Timestamp) {
        match self {
            Times::One(one) if *one == time => *self = Times::None,
            Times::Many(times) => times.retain(|other| *other != time),
            _ => {}
        }
    }

    /// Takes the first one out, unless it is after `until`.
    pub(crate) fn pop_until(&mut self, until: Timestamp) -> Option<Timestamp> {
        let first = self.first().filter(|first| *first <= until)?;
        match self {
            Times::Many(times) => drop(times.pop()),
            _ => *self = Times::None,
        }
        Some(first)
    }

    pub(crate) fn clear(&mut self) {
        *self = Times::None;
    }

    /// The last one first.
    pub(crate) fn as_slice(&self) -> &[Timestamp] {
        match self {
            Times::None => &[],
            Times::One(time) => std::slice::from_ref(time),
            Times::Many(times) => times,
        }
    }

    /// Moves all of `other` here.
    pub(crate) fn append(&mut self, other: Times) {
        match other {
            Times::None => {}
            Times::One(time) => self.insert(time),
            Times::Many(times) => times.into_iter().for_each(|time| self.insert(time)),
        }
    }
}

impl Timers {
    /// Whether there are none.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        matches!((&self.event, &self.processing), (Times::None, Times::None))
    }
}

impl From<Vec<Timestamp>> for Times {
    fn from(times: Vec<Timestamp>) -> Self {
        let mut all = Times::None;
        times.into_iter().for_each(|time| all.insert(time));
        all
    }
}

/// Under which time an index leads to a key, if it does.
#[derive(Clone, Debug)]
pub struct Indexed(Cell<Timestamp>);

impl Indexed {
    /// No timer is for the beginning of time.
    const NOT: Timestamp = Timestamp::MIN;

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<Timestamp> {
        Some(self.0.get()).filter(|time| *time != Self::NOT)
    }

    #[inline(always)]
    pub(crate) fn set(&self, time: Option<Timestamp>) {
        self.0.set(time.unwrap_or(Self::NOT));
    }

    /// Whether the index does not lead here until `time`, or later.
    #[inline(always)]
    pub(crate) fn is_after(&self, time: Timestamp) -> bool {
        self.get().is_none_or(|indexed| time < indexed)
    }
}

impl Default for Indexed {
    fn default() -> Self {
        Indexed(Cell::new(Self::NOT))
    }
}

/// When to look at which key, by its hash or what else leads there.
///
/// A key is here about once, for the first of its timers; when that one is due, it is put here again for the next. A
/// session that grows needs no change here: it is looked at too early, and put here again. What is here can always be
/// made anew from the state.
#[derive(Debug)]
pub(crate) struct Index<T = u64> {
    due: BTreeMap<Timestamp, Vec<T>>,
    /// Those of a time for which several were put here in a row, as for windows that end together; not among the others,
    /// unless empty.
    latest: (Timestamp, Vec<T>),
    /// The time that was put here last.
    last: Timestamp,
    /// Of a time that has come, those that are left; the next one is the last.
    coming: Option<(Timestamp, Vec<T>)>,
    /// Whether something was put here for an earlier time meanwhile.
    overtaken: bool,
    /// Memory to be used again.
    spare: Vec<T>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Index {
            due: BTreeMap::new(),
            latest: (Timestamp::MIN, Vec::new()),
            last: Timestamp::MIN,
            coming: None,
            overtaken: false,
            spare: Vec::new(),
        }
    }
}

impl<T> Index<T> {
    #[inline]
    pub(crate) fn push(&mut self, time: Timestamp, lead: T) {
        if self.latest.0 == time {
            self.latest.1.push(lead);
        } else {
            self.push_apart(time, lead);
        }
    }

    #[inline(never)]
    fn push_apart(&mut self, time: Timestamp, lead: T) {
        self.overtaken |= self.coming.as_ref().is_some_and(|(coming, _)| time < *coming);
        // Times that go back and forth, as the ends of sessions do, are looked up once each.
        if self.last != time {
            self.last = time;
            self.due.entry(time).or_insert_with(|| std::mem::take(&mut self.spare)).push(lead);
            return;
        }
        self.put_latest_back();
        let mut leads = self.due.remove(&time).unwrap_or_else(|| std::mem::take(&mut self.spare));
        leads.push(lead);
        self.latest = (time, leads);
    }

    fn put_latest_back(&mut self) {
        let (time, leads) = &mut self.latest;
        if !leads.is_empty() {
            self.due.insert(*time, std::mem::take(leads));
        }
        self.latest.0 = Timestamp::MIN;
    }

    /// The first time for which a key is here.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        let due = self.due.first_key_value().map(|(time, _)| *time);
        let latest = Some(self.latest.0).filter(|_| !self.latest.1.is_empty());
        let coming = self.coming.as_ref().map(|(time, _)| *time);
        coming.into_iter().chain(latest).chain(due).min()
    }

    /// Takes out the next key that is due, with its time.
    #[inline]
    pub(crate) fn pop_until(&mut self, until: Timestamp) -> Option<(Timestamp, T)> {
        loop {
            if let Some((time, leads)) = &mut self.coming
                && !self.overtaken
                && *time <= until
                && let Some(lead) = leads.pop()
            {
                return Some((*time, lead));
            }
            if !self.come_next(until) {
                return None;
            }
        }
    }

    /// Some of those that come next, the first of them last, if nothing overtakes them.
    #[inline]
    pub(crate) fn coming(&self, some: usize) -> &[T] {
        let coming = self.coming.as_ref().map_or(&[][..], |(_, leads)| leads);
        &coming[coming.len().saturating_sub(some)..]
    }

    /// Lets the first time come, if it is due.
    #[inline(never)]
    fn come_next(&mut self, until: Timestamp) -> bool {
        self.put_latest_back();
        self.overtaken = false;
        if let Some((time, leads)) = self.coming.take() {
            if leads.is_empty() {
                self.spare = leads;
            } else {
                self.due.entry(time).or_default().splice(0..0, leads.into_iter().rev());
            }
        }
        let Some(first) = self.due.first_entry().filter(|first| *first.key() <= until) else { return false };
        let (time, mut leads) = first.remove_entry();
        // In the order in which they came.
        leads.reverse();
        self.coming = Some((time, leads));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn all(index: &mut Index, until: i64) -> Vec<(i64, u64)> {
        std::iter::from_fn(|| index.pop_until(at(until)).map(|(time, lead)| (time.as_millis(), lead)))
            .collect()
    }

    #[test]
    fn what_is_due_comes_in_the_order_of_time_and_then_as_it_was_put() {
        let mut index = Index::default();
        for (time, lead) in [(5, 1), (5, 2), (3, 3), (5, 4), (3, 5), (9, 6)] {
            index.push(at(time), lead);
        }
        assert_eq!(index.first(), Some(at(3)));
        assert_eq!(all(&mut index, 2), []);
        assert_eq!(all(&mut index, 5), [(3, 3), (3, 5), (5, 1), (5, 2), (5, 4)]);
        assert_eq!(index.first(), Some(at(9)));
    }

    #[test]
    fn what_is_put_for_an_earlier_time_meanwhile_overtakes() {
        let mut index = Index::default();
        [1, 2, 3].into_iter().for_each(|lead| index.push(at(5), lead));
        assert_eq!(index.pop_until(at(9)), Some((at(5), 1)));
        index.push(at(4), 4);
        index.push(at(5), 5);
        assert_eq!(index.first(), Some(at(4)));
        assert_eq!(all(&mut index, 9), [(4, 4), (5, 2), (5, 3), (5, 5)]);
        // And while something is left because it is not due yet.
        index.push(at(7), 6);
        index.push(at(7), 7);
        assert_eq!(index.pop_until(at(7)), Some((at(7), 6)));
        assert_eq!(index.pop_until(at(6)), None);
        index.push(at(6), 8);
        assert_eq!(all(&mut index, 7), [(6, 8), (7, 7)]);
        assert_eq!(index.first(), None);
    }
}
