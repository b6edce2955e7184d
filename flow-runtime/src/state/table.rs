//! The table of keyed state that a stateful operator keeps in each of its subtasks.

use std::{
    cell::{RefCell, RefMut},
    collections::BTreeMap,
    marker::PhantomData,
    rc::Rc,
};

use bytes::Bytes;
use hashbrown::HashTable;

use super::{Key, KeyGroup, KeyGroups, StoredKey, hash};
use crate::{
    checkpoint::{CheckpointError, decode_entries, decode_groups, encode_entry, encode_groups},
    error::BoxError,
    record::{Portable, Slot},
};

/// What can be kept as state of a key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept as state",
    label = "this would have to be written to a checkpoint",
    note = "state is copied and written to every checkpoint: derive `Clone`, `serde::Serialize` and `serde::Deserialize`, and make it `Send`"
)]
pub trait StateValue: Portable + Clone {}

#[diagnostic::do_not_recommend]
impl<T: Portable + Clone> StateValue for T {}

/// A handle to the state of one operator in one subtask; the chain's loop borrows it for each batch, the checkpoint
/// in between.
#[derive(Debug)]
pub struct Keyed<K, V>(Rc<RefCell<Table<K, V>>>);

impl<K, V> Clone for Keyed<K, V> {
    fn clone(&self) -> Self {
        Keyed(Rc::clone(&self.0))
    }
}

impl<K: StoredKey, V: StateValue> Keyed<K, V> {
    pub(crate) fn empty() -> Self {
        Keyed(Rc::new(RefCell::new(Table::new())))
    }
}

impl<K, V> Keyed<K, V> {
    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> RefMut<'_, Table<K, V>> {
        self.0.borrow_mut()
    }
}

/// A value per key. A key is found by its borrowed form and owned when it is new.
#[derive(Debug)]
pub struct Table<K, V> {
    entries: HashTable<(K, V)>,
}

// What a value has to be is asked for once, where the state is made.
impl<K: StoredKey, V> Table<K, V> {
    pub(crate) fn new() -> Self {
        Table { entries: HashTable::new() }
    }

    /// The value of `key`, which is `initial()` when the key is new.
    #[inline(always)]
    pub fn value<Q: Key<Stored = K>>(&mut self, key: &Q, initial: impl FnOnce() -> V) -> &mut V {
        let hash = hash(key);
        // `entry` would hash, compare and reserve in one go, but it needs the owned key; this is as fast for keys that
        // are known, and those are nearly all.
        match self.entries.find_entry(hash, |(stored, _)| key.is(stored)) {
            Ok(entry) => &mut entry.into_mut().1,
            Err(absent) => {
                &mut absent.into_table().insert_unique(hash, (key.store(), initial()), rehash).into_mut().1
            }
        }
    }

    /// Merges `value` into the value of `key`, or stores it when the key is new, and returns the result.
    #[inline(always)]
    pub(crate) fn merge<Q: Key<Stored = K>>(
        &mut self,
        key: &Q,
        value: V,
        merge: impl FnOnce(&mut V, V) -> Result<(), BoxError>,
    ) -> Result<V, BoxError>
    where
        V: Clone,
    {
        let hash = hash(key);
        match self.entries.find_entry(hash, |(stored, _)| key.is(stored)) {
            Ok(entry) => {
                let held = &mut entry.into_mut().1;
                merge(held, value)?;
                Ok(held.clone())
            }
            Err(absent) => {
                absent.into_table().insert_unique(hash, (key.store(), value.clone()), rehash);
                Ok(value)
            }
        }
    }

    /// Takes out all entries: the final results of a batch pipeline.
    pub fn results(&mut self) -> impl Iterator<Item = (Slot<K>, V)> {
        std::mem::take(&mut self.entries).into_iter().map(|(key, value)| (Slot::new(key), value))
    }
}

impl<K, T> Table<K, Option<T>> {
    /// Says what the state is, so that a closure over it can be checked.
    #[inline(always)]
    pub fn holds(&self, _: PhantomData<T>) {}
}

impl<K, B, T> Table<K, Option<(B, T)>> {
    /// As [`holds`](Self::holds), for a record with what it is compared by.
    #[inline(always)]
    pub fn holds_by(&self, _: &B, _: PhantomData<T>) {}
}

impl<K: StoredKey, V> Table<K, Option<V>> {
    /// The value of `key`, empty when the key is new.
    #[inline(always)]
    pub fn slot<Q: Key<Stored = K>>(&mut self, key: &Q) -> &mut Option<V> {
        self.value(key, || None)
    }
}

fn rehash<K: StoredKey, V>(entry: &(K, V)) -> u64 {
    hash(&entry.0)
}

/// What a checkpoint needs of a [`Keyed`], whatever its types.
pub(crate) trait StatePort {
    /// Copies the entries, and returns what will encode the copy elsewhere.
    fn snapshot(&self, groups: KeyGroups) -> Box<dyn FnOnce() -> Result<Bytes, CheckpointError> + Send>;

    /// Adds the entries of a snapshot that belong to this subtask.
    fn restore(&self, part: &Bytes, groups: KeyGroups, subtask: usize) -> Result<(), CheckpointError>;
}

impl<K: StoredKey, V: StateValue> StatePort for Keyed<K, V> {
    fn snapshot(&self, groups: KeyGroups) -> Box<dyn FnOnce() -> Result<Bytes, CheckpointError> + Send> {
        let copy: Vec<(K, V)> = self.0.borrow().entries.iter().cloned().collect();
        Box::new(move || {
            let mut encoded = BTreeMap::<KeyGroup, Vec<u8>>::new();
            for (key, value) in &copy {
                encode_entry(encoded.entry(groups.group(hash(key))).or_default(), key, value)?;
            }
            Ok(encode_groups(encoded.into_iter().map(|(group, entries)| (group.0, entries))))
        })
    }

    fn restore(&self, part: &Bytes, groups: KeyGroups, subtask: usize) -> Result<(), CheckpointError> {
        let entries = &mut self.0.borrow_mut().entries;
        for group in decode_groups(part) {
            let (group, bytes) = group?;
            if groups.owner(KeyGroup(group)) == subtask {
                for entry in decode_entries::<K, V>(&bytes) {
                    let entry = entry?;
                    entries.insert_unique(hash(&entry.0), entry, rehash);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_restores_at_another_parallelism() {
        let one = Keyed::empty();
        for n in 0..1000u64 {
            one.borrow_mut().add(n, n).unwrap();
        }
        let groups = |parallelism| KeyGroups { max_parallelism: 128, parallelism };
        let part = one.snapshot(groups(1))().unwrap();
        let mut found = 0;
        for subtask in 0..3 {
            let third = Keyed::<u64, u64>::empty();
            third.restore(&part, groups(3), subtask).unwrap();
            for (mut key, value) in third.borrow_mut().results() {
                assert_eq!(key.lend(), value);
                found += 1;
            }
        }
        assert_eq!(found, 1000);
    }
}
