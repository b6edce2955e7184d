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
    /// Of a time that has come, those that are left; the next one is the last.
    coming: Option<(Timestamp, Vec<T>)>,
    /// Memory to be used again.
    spare: Vec<T>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Index { due: BTreeMap::new(), coming: None, spare: Vec::new() }
    }
}

impl<T> Index<T> {
    pub(crate) fn push(&mut self, time: Timestamp, lead: T) {
        self.due.entry(time).or_insert_with(|| std::mem::take(&mut self.spare)).push(lead);
    }

    /// The first time for which a key is here.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        let due = self.due.first_key_value().map(|(time, _)| *time);
        self.coming.as_ref().map(|(time, _)| *time).into_iter().chain(due).min()
    }

    /// Takes out the next key that is due, with its time.
    pub(crate) fn pop_until(&mut self, until: Timestamp) -> Option<(Timestamp, T)> {
        loop {
            if let Some((time, leads)) = &mut self.coming {
                // Something earlier may have been put here meanwhile.
                let overtaken = self.due.first_key_value().is_some_and(|(first, _)| first < time);
                if !overtaken
                    && *time <= until
                    && let Some(lead) = leads.pop()
                {
                    return Some((*time, lead));
                }
                let (time, leads) = self.coming.take()?;
                if leads.is_empty() {
                    self.spare = leads;
                } else {
                    self.due.entry(time).or_default().splice(0..0, leads.into_iter().rev());
                    if !overtaken {
                        return None;
                    }
                }
            }
            let first = self.due.first_entry().filter(|first| *first.key() <= until)?;
            let (time, mut leads) = first.remove_entry();
            // In the order in which they came.
            leads.reverse();
            self.coming = Some((time, leads));
        }
    }
}
