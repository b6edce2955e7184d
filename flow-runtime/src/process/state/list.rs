//! A list per key.

use super::{State, Ttl, from_bytes, to_bytes, ttl::Stamp};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// A list of elements, in the order in which they were added. With a `ttl` each element has its own time.
#[derive(Clone, Debug)]
pub struct ListState<T> {
    held: Vec<T>,
    /// One per element, with a `ttl`.
    stamps: Vec<Stamp>,
    ttl: Option<&'static Ttl>,
}

impl<T> ListState<T> {
    /// Adds an element at the end.
    pub fn push(&mut self, element: T) {
        if self.ttl.is_some() {
            self.stamps.push(Stamp::new(self.ttl));
        }
        self.held.push(element);
    }

    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.held.iter().enumerate().filter(|(i, _)| self.sees(*i)).map(|(_, element)| element)
    }

    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.ttl.is_none() { self.held.len() } else { self.iter().count() }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Takes all elements out.
    pub fn take(&mut self) -> Vec<T> {
        let stamps = std::mem::take(&mut self.stamps);
        let mut held = std::mem::take(&mut self.held);
        if let Some(ttl) = self.ttl {
            let mut seen = stamps.iter().map(|stamp| stamp.read(Some(ttl)));
            held.retain(|_| seen.next().unwrap_or(true));
        }
        held
    }

    /// Keeps the elements that `keep` says to keep.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let kept: Vec<bool> = self.held.iter().map(&mut keep).collect();
        let mut of_stamps = kept.iter();
        self.stamps.retain(|_| of_stamps.next().copied().unwrap_or(true));
        let mut of_held = kept.iter();
        self.held.retain(|_| of_held.next().copied().unwrap_or(true));
    }

    /// Replaces all elements.
    pub fn set(&mut self, elements: impl IntoIterator<Item = T>) {
        self.clear();
        self.extend(elements);
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.held.clear();
        self.stamps.clear();
    }

    fn sees(&self, i: usize) -> bool {
        self.ttl.is_none() || self.stamps[i].read(self.ttl)
    }
}

impl<T> Extend<T> for ListState<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push(element));
    }
}

impl<T: StateValue> State for ListState<T> {
    const EXPIRES: bool = false;

    fn empty(ttl: Option<&'static Ttl>) -> Self {
        ListState { held: Vec::new(), stamps: Vec::new(), ttl }
    }

    fn copy(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    #[inline]
    fn ends(&self) -> Option<Timestamp> {
        // What was added first ends first, unless a clock has gone back: then it is looked at too late by as much.
        self.ttl.zip(self.stamps.first()).map(|(ttl, stamp)| stamp.end(ttl))
    }

    fn clean(&mut self, now: Timestamp) {
        let Some(ttl) = self.ttl else { return };
        let over: Vec<bool> = self.stamps.iter().map(|stamp| stamp.clean(ttl, now)).collect();
        let mut of_held = over.iter();
        self.held.retain(|_| !of_held.next().copied().unwrap_or(false));
        let mut of_stamps = over.iter();
        self.stamps.retain(|_| !of_stamps.next().copied().unwrap_or(false));
    }

    fn encode(&self) -> Result<Vec<u8>, BoxError> {
        let stamps: Vec<_> = self.stamps.iter().map(|stamp| stamp.stored(self.ttl)).collect();
        to_bytes(&(&self.held, stamps))
    }

    fn decode(bytes: &[u8], ttl: Option<&'static Ttl>) -> Result<Self, BoxError> {
        let (held, stamps): (Vec<T>, Vec<Option<Timestamp>>) = from_bytes(bytes)?;
        let known = stamps.into_iter().map(Stamp::restored);
        let stamps = match ttl {
            Some(_) => {
                known.chain(std::iter::repeat_with(|| Stamp::restored(None))).take(held.len()).collect()
            }
            None => Vec::new(),
        };
        Ok(ListState { held, stamps, ttl })
    }
}
