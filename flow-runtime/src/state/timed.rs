//! Looking at entries by the hash of their key alone, as timers do, which need no copy of the key then.
//!
//! The table itself compares only a few bits of a hash and leaves the rest to the caller, so the hash of what is found is
//! made again: otherwise a timer would find any other key that has a timer for the same time.

use super::{
    Key, StoredKey, Table,
    ahead::Spot,
    hash,
    shard::{Entry, Marks, Shard},
    table::insert,
    track::{Found, Tracker},
};

impl<K: StoredKey, V> Table<K, V> {
    /// The value of `key`, whose hash is given, or where its entry is found, with the stored key.
    #[inline(always)]
    pub(crate) fn entry<Q: Key<Stored = K>>(
        &mut self,
        spot: impl Into<Spot>,
        key: &Q,
        initial: impl FnOnce() -> V,
    ) -> (&K, &mut V) {
        let spot = spot.into();
        let number = self.number(spot.hash);
        let Shard { entries, marks } = &mut self.shards[number];
        let entry = match spot.find(entries, key) {
            Ok(found) => self.tracker.change(number, marks, found),
            Err(absent) => {
                let new = Entry { key: key.store(), value: initial() };
                insert(absent.into_table(), marks, &mut self.tracker, number, spot.hash, new)
            }
        };
        let Entry { key, value } = entry;
        (key, value)
    }

    /// The value of `key`, whose hash is given. Does not count as a change.
    #[inline]
    pub(crate) fn get<Q: Key<Stored = K>>(&self, hash: u64, key: &Q) -> Option<&V> {
        Some(&self.shards[self.number(hash)].entries.find(hash, |entry| key.is(&entry.key))?.value)
    }

    /// A value of this hash that `is` chooses. Does not count as a change.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is: impl FnMut(&V) -> bool) -> Option<&V> {
        Some(
            &self.shards[self.number(hash)]
                .entries
                .find(hash, |entry| is(&entry.value) && hash == self::hash(&entry.key))?
                .value,
        )
    }

    /// A value of this hash that `is` chooses, to be changed.
    #[inline]
    pub(crate) fn find_mut(&mut self, hash: u64, mut is: impl FnMut(&V) -> bool) -> Option<(&K, &mut V)> {
        let number = self.number(hash);
        let Shard { entries, marks } = &mut self.shards[number];
        let found =
            entries.find_entry(hash, |entry| is(&entry.value) && hash == self::hash(&entry.key)).ok()?;
        let Entry { key, value } = self.tracker.change(number, marks, found);
        Some((key, value))
    }

    /// Removes a value of this hash that `is` chooses.
    #[inline]
    pub(crate) fn remove_found(&mut self, hash: u64, mut is: impl FnMut(&V) -> bool) -> Option<V> {
        let number = self.number(hash);
        let Shard { entries, marks } = &mut self.shards[number];
        let found =
            entries.find_entry(hash, |entry| is(&entry.value) && hash == self::hash(&entry.key)).ok()?;
        Some(self.tracker.remove(number, marks, found))
    }

    /// As [`find_mut`](Self::find_mut), for whoever wants to look before it changes, and perhaps to remove it.
    #[inline(always)]
    pub(crate) fn find_entry(
        &mut self,
        hash: u64,
        mut is: impl FnMut(&V) -> bool,
    ) -> Option<FoundEntry<'_, K, V>> {
        let number = self.number(hash);
        let Shard { entries, marks } = &mut self.shards[number];
        let found =
            entries.find_entry(hash, |entry| is(&entry.value) && hash == self::hash(&entry.key)).ok()?;
        Some(FoundEntry { found, marks, tracker: &mut self.tracker, number })
    }

    /// Lets the processor fetch the entries of these hashes from memory, all at once, if the table is
    /// [large](Self::is_large). `look` has to look at the value.
    #[inline]
    pub(crate) fn fetch(&self, hashes: impl Iterator<Item = u64>, look: impl Fn(&V) -> usize) {
        if !self.is_large() {
            return;
        }
        // Nothing depends on what is found, so the processor need not wait for it.
        let found = hashes.filter_map(|hash| {
            let entry = self.shards[self.number(hash)].entries.find(hash, |_| true)?;
            Some(look(&entry.value))
        });
        std::hint::black_box(found.sum::<usize>());
    }

    /// All values with the hashes of their keys. Does not count as a change.
    pub(crate) fn hashed(&self) -> impl Iterator<Item = (u64, &V)> {
        let entries = self.shards.iter().flat_map(|shard| &shard.entries);
        entries.map(|entry| (hash(&entry.key), &entry.value))
    }
}

/// An entry that has been found.
pub(crate) struct FoundEntry<'t, K, V> {
    found: Found<'t, K, V>,
    marks: &'t mut Marks,
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
        self.tracker.change_in_place(self.number, self.marks, &self.found);
        let Entry { key, value } = self.found.get_mut();
        (key, value)
    }

    /// Removes it.
    pub(crate) fn remove(self) {
        self.tracker.remove(self.number, self.marks, self.found);
    }

    /// Removes it, and does something last with the value.
    #[inline(always)]
    pub(crate) fn remove_with<R>(self, last: impl FnOnce(&K, &mut V) -> R) -> R {
        self.tracker.remove_with(self.number, self.marks, self.found, last).1
    }
}
