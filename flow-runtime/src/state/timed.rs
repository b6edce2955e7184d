//! Looking at entries by the hash of their key alone, as timers do, which need no copy of the key then.

use super::{
    Key, StoredKey, Table, hash,
    shard::{self, Entry},
    table::insert,
    track::{Found, Tracker},
};

impl<K: StoredKey, V> Table<K, V> {
    /// The value of `key`, whose hash is given, with the stored key.
    #[inline(always)]
    pub(crate) fn entry<Q: Key<Stored = K>>(
        &mut self,
        hash: u64,
        key: &Q,
        initial: impl FnOnce() -> V,
    ) -> (&K, &mut V) {
        let number = shard::of(hash);
        let entry = match self.shards[number].find_entry(hash, |entry| key.is(&entry.key)) {
            Ok(found) => self.tracker.change(number, found),
            Err(absent) => {
                let table = absent.into_table();
                insert(table, &mut self.tracker, number, hash, key.store(), initial())
            }
        };
        let Entry { key, value, .. } = entry;
        (key, value)
    }

    /// The value of `key`, whose hash is given. Does not count as a change.
    #[inline]
    pub(crate) fn get<Q: Key<Stored = K>>(&self, hash: u64, key: &Q) -> Option<&V> {
        Some(&self.shards[shard::of(hash)].find(hash, |entry| key.is(&entry.key))?.value)
    }

    /// A value of this hash that `is` chooses. Does not count as a change.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is: impl FnMut(&V) -> bool) -> Option<&V> {
        Some(&self.shards[shard::of(hash)].find(hash, |entry| is(&entry.value))?.value)
    }

    /// A value of this hash that `is` chooses, to be changed.
    #[inline]
    pub(crate) fn find_mut(&mut self, hash: u64, mut is: impl FnMut(&V) -> bool) -> Option<(&K, &mut V)> {
        let number = shard::of(hash);
        let found = self.shards[number].find_entry(hash, |entry| is(&entry.value)).ok()?;
        let Entry { key, value, .. } = self.tracker.change(number, found);
        Some((key, value))
    }

    /// Removes a value of this hash that `is` chooses.
    #[inline]
    pub(crate) fn remove_found(&mut self, hash: u64, mut is: impl FnMut(&V) -> bool) -> Option<V> {
        let number = shard::of(hash);
        let found = self.shards[number].find_entry(hash, |entry| is(&entry.value)).ok()?;
        let (entry, _) = found.remove();
        Some(self.tracker.remove(number, entry))
    }

    /// As [`find_mut`](Self::find_mut), for whoever wants to look before it changes, and perhaps to remove it.
    #[inline(always)]
    pub(crate) fn find_entry(
        &mut self,
        hash: u64,
        mut is: impl FnMut(&V) -> bool,
    ) -> Option<FoundEntry<'_, K, V>> {
        let number = shard::of(hash);
        let found = self.shards[number].find_entry(hash, |entry| is(&entry.value)).ok()?;
        Some(FoundEntry { found, tracker: &mut self.tracker, number })
    }

    /// All values with the hashes of their keys. Does not count as a change.
    pub(crate) fn hashed(&self) -> impl Iterator<Item = (u64, &V)> {
        self.shards.iter().flatten().map(|entry| (hash(&entry.key), &entry.value))
    }
}

/// An entry that has been found.
pub(crate) struct FoundEntry<'t, K, V> {
    found: Found<'t, K, V>,
    tracker: &'t mut Tracker<K, V>,
    number: usize,
}

impl<K, V> FoundEntry<'_, K, V> {
    /// The value. Does not count as a change.
    #[inline(always)]
    pub(crate) fn value(&self) -> &V {
        &self.found.get().value
    }

    /// The value, to be changed, with the key.
    #[inline(always)]
    pub(crate) fn change(&mut self) -> (&K, &mut V) {
        self.tracker.change_in_place(self.number, &mut self.found);
        let Entry { key, value, .. } = self.found.get_mut();
        (key, value)
    }

    /// Removes it.
    pub(crate) fn remove(self) {
        let (entry, _) = self.found.remove();
        self.tracker.remove(self.number, entry);
    }

    /// Removes it, and does something last with the value.
    #[inline(always)]
    pub(crate) fn remove_with<R>(self, last: impl FnOnce(&K, &mut V) -> R) -> R {
        let (mut entry, _) = self.found.remove();
        self.tracker.save_removed(&mut entry);
        let result = last(&entry.key, &mut entry.value);
        self.tracker.note_removed(self.number, entry);
        result
    }
}
