//! A map per key.

use std::{borrow::Borrow, cell::Cell, collections::BTreeMap};

use super::{State, Ttl, from_bytes, to_bytes, ttl::Stamp};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// A map, in the order of its keys, so that what is made of it does not depend on how it came about. With a `ttl` each
/// entry has its own time.
#[derive(Clone, Debug)]
pub struct MapState<K, V> {
    held: BTreeMap<K, (V, Stamp)>,
    ttl: Option<&'static Ttl>,
    /// The first entry to end ends then, or later.
    ends: Cell<Timestamp>,
}

impl<K: Ord, V> MapState<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.held.get(key).filter(|(_, stamp)| stamp.read(self.ttl)).map(|(value, _)| value)
    }

    /// The value of a key, to be changed in place.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (value, stamp) = self.held.get_mut(key).filter(|(_, stamp)| stamp.read(self.ttl))?;
        stamp.write(self.ttl);
        Some(value)
    }

    /// The value of a key, to be changed in place; `initial()` if there is none.
    pub fn get_or_insert_with(&mut self, key: K, initial: impl FnOnce() -> V) -> &mut V {
        let (ttl, ends) = (self.ttl, &self.ends);
        match self.held.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => {
                let (value, stamp) = entry.into_mut();
                if !stamp.read(ttl) {
                    *value = initial();
                }
                stamp.write(ttl);
                value
            }
            std::collections::btree_map::Entry::Vacant(entry) => {
                let stamp = Stamp::new(ttl);
                note(ends, ttl, &stamp);
                &mut entry.insert((initial(), stamp)).0
            }
        }
    }

    /// Puts a value, and gives the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let stamp = Stamp::new(self.ttl);
        note(&self.ends, self.ttl, &stamp);
        let (value, stamp) = self.held.insert(key, (value, stamp))?;
        stamp.read(self.ttl).then_some(value)
    }

    /// Takes a value out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (value, stamp) = self.held.remove(key)?;
        stamp.read(self.ttl).then_some(value)
    }

    /// Whether a key has a value.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let seen = self.held.iter().filter(|(_, (_, stamp))| stamp.read(self.ttl));
        seen.map(|(key, (value, _))| (key, value))
    }

    /// All keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Keeps the entries that `keep` says to keep.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.held.retain(|key, (value, _)| keep(key, value));
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.ttl.is_none() { self.held.len() } else { self.iter().count() }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.held.clear();
    }
}

fn note(ends: &Cell<Timestamp>, ttl: Option<&'static Ttl>, stamp: &Stamp) {
    if let Some(ttl) = ttl {
        ends.set(ends.get().min(stamp.end(ttl)));
    }
}

impl<K: StateValue + Ord, V: StateValue> State for MapState<K, V> {
    const EXPIRES: bool = false;

    fn empty(ttl: Option<&'static Ttl>) -> Self {
        MapState { held: BTreeMap::new(), ttl, ends: Cell::new(Timestamp::MAX) }
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
        (self.ttl.is_some() && !self.held.is_empty()).then(|| self.ends.get())
    }

    fn clean(&mut self, now: Timestamp) {
        let Some(ttl) = self.ttl else { return };
        self.held.retain(|_, (_, stamp)| !stamp.clean(ttl, now));
        let ends = self.held.values().map(|(_, stamp)| stamp.end(ttl)).min();
        self.ends.set(ends.unwrap_or(Timestamp::MAX));
    }

    fn encode(&self) -> Result<Vec<u8>, BoxError> {
        let entries: Vec<_> =
            self.held.iter().map(|(key, (value, stamp))| (key, value, stamp.stored(self.ttl))).collect();
        to_bytes(&entries)
    }

    fn decode(bytes: &[u8], ttl: Option<&'static Ttl>) -> Result<Self, BoxError> {
        let entries: Vec<(K, V, Option<Timestamp>)> = from_bytes(bytes)?;
        let mut map = MapState::empty(ttl);
        for (key, value, stamp) in entries {
            let stamp = Stamp::restored(stamp);
            note(&map.ends, ttl, &stamp);
            map.held.insert(key, (value, stamp));
        }
        Ok(map)
    }
}
