//! The table of keyed state that a stateful operator keeps in each of its subtasks.

use std::{
    cell::{RefCell, RefMut},
    fmt,
    marker::PhantomData,
    rc::Rc,
    time::Instant,
};

use hashbrown::HashTable;

use super::{
    Key, StoredKey,
    ahead::Spot,
    hash,
    shard::{self, Entry, Marks, Shard, Shards},
    track::{Closed, Left, Tracker},
};
use crate::{
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
        let mut table = self.0.borrow_mut();
        if table.is_crowded() {
            (table.spread)(&mut table);
        }
        table
    }
}

/// A value per key. A key is found by its borrowed form and owned when it is new.
///
/// Whatever gives access to a value counts as its change, and is written to the next checkpoint.
pub struct Table<K, V> {
    pub(super) shards: Shards<K, V>,
    /// Of the bits that choose a shard, those that count: none while all entries are in the first.
    mask: usize,
    pub(super) tracker: Tracker<K, V>,
    spread: fn(&mut Table<K, V>),
}

impl<K: StoredKey, V: StateValue> Table<K, V> {
    pub(crate) fn new() -> Self {
        Table { shards: shard::empty(), mask: 0, tracker: Tracker::new(), spread: Table::spread }
    }
}

// What a value has to be is asked for once, where the state is made.
impl<K: StoredKey, V> Table<K, V> {
    /// The value of `key`, which is `initial()` when the key is new.
    #[inline(always)]
    pub fn value<Q: Key<Stored = K>>(&mut self, key: &Q, initial: impl FnOnce() -> V) -> &mut V {
        self.value_at(Spot::from(hash(key)), key, initial)
    }

    /// As [`value`](Self::value), of a key that has come by [`arrive`](Self::arrive).
    #[inline(always)]
    pub fn value_at<Q: Key<Stored = K>>(
        &mut self,
        spot: Spot,
        key: &Q,
        initial: impl FnOnce() -> V,
    ) -> &mut V {
        self.entry(spot, key, initial).1
    }

    /// Merges `value` into the value of `key`, which is to be found at `spot`, or stores it when the key is new, and
    /// returns the result.
    #[inline(always)]
    pub(super) fn merge<Q: Key<Stored = K>>(
        &mut self,
        spot: Spot,
        key: &Q,
        value: V,
        merge: impl FnOnce(&mut V, V) -> Result<(), BoxError>,
    ) -> Result<V, BoxError>
    where
        V: Clone,
    {
        let number = self.number(spot.hash);
        let Shard { entries, marks } = &mut self.shards[number];
        // `entry` would hash, compare and reserve in one go, but it needs the owned key; this is as fast for keys that
        // are known, and those are nearly all.
        match spot.find(entries, key) {
            Ok(found) => {
                let entry = self.tracker.change(number, marks, found);
                merge(&mut entry.value, value)?;
                Ok(entry.value.clone())
            }
            Err(absent) => {
                let new = Entry { key: key.store(), value: value.clone() };
                insert(absent.into_table(), marks, &mut self.tracker, number, spot.hash, new);
                Ok(value)
            }
        }
    }

    /// Replaces the value of `key`, which is to be found at `spot`, by `value` where `replace` says so, given the value
    /// that is held and `value`, or stores it when the key is new. Returns the value that is held then. What is not
    /// replaced has not changed.
    #[inline(always)]
    pub(super) fn replace<Q: Key<Stored = K>>(
        &mut self,
        spot: Spot,
        key: &Q,
        value: V,
        replace: impl FnOnce(&V, &V) -> bool,
    ) -> V
    where
        V: Clone,
    {
        let number = self.number(spot.hash);
        let Shard { entries, marks } = &mut self.shards[number];
        match spot.find(entries, key) {
            Ok(found) => {
                if !replace(&found.get().value, &value) {
                    return found.get().value.clone();
                }
                self.tracker.change(number, marks, found).value = value.clone();
                value
            }
            Err(absent) => {
                let new = Entry { key: key.store(), value: value.clone() };
                insert(absent.into_table(), marks, &mut self.tracker, number, spot.hash, new);
                value
            }
        }
    }

    /// Takes out the value of `key`.
    #[inline]
    pub fn remove<Q: Key<Stored = K>>(&mut self, key: &Q) -> Option<V> {
        let hash = hash(key);
        let number = self.number(hash);
        let Shard { entries, marks } = &mut self.shards[number];
        let found = entries.find_entry(hash, |entry| key.is(&entry.key)).ok()?;
        Some(self.tracker.remove(number, marks, found))
    }

    /// Takes out all entries: the final results of a batch pipeline.
    pub fn results(&mut self) -> impl Iterator<Item = (Slot<K>, V)> {
        self.collect(None);
        self.tracker.emptied();
        let shards = std::mem::replace(&mut self.shards, shard::empty());
        self.mask = 0;
        let entries = shards.into_iter().flat_map(|shard| shard.entries);
        entries.map(|entry| (Slot::new(entry.key), entry.value))
    }

    /// Puts an entry of a checkpoint that is being restored, or removes it.
    pub(super) fn restore(&mut self, key: K, value: Option<V>) {
        if self.is_crowded() {
            self.spread();
        }
        let hash = hash(&key);
        let number = self.number(hash);
        let Shard { entries, marks } = &mut self.shards[number];
        match (entries.find_entry(hash, |entry| entry.key == key), value) {
            (Ok(found), Some(value)) => found.into_mut().value = value,
            (Ok(found), None) => drop(found.remove()),
            (Err(absent), Some(value)) => {
                let entries = absent.into_table();
                make_room(entries, marks, &mut self.tracker, number);
                let bucket = entries.insert_unique(hash, Entry { key, value }, shard::rehash).bucket_index();
                self.tracker.restored(number, marks, bucket);
            }
            (Err(_), None) => {}
        }
    }
}

impl<K: StoredKey, V> Table<K, V> {
    /// Spreads what is in the first shard over all of them.
    #[cold]
    #[inline(never)]
    fn spread(&mut self) {
        self.mask = shard::SHARDS - 1;
        shard::spread(&mut self.shards, &mut self.tracker.stored);
        self.tracker.moved_all();
    }
}

impl<K, V> Table<K, V> {
    /// The shard of a hash.
    #[inline(always)]
    pub(super) fn number(&self, hash: u64) -> usize {
        shard::of(hash) & self.mask
    }

    /// How many shards entries are in.
    pub(super) fn shards_in_use(&self) -> usize {
        self.mask + 1
    }

    /// Whether the entries are too many for one shard. They are spread before the next batch, and not while references lead
    /// into it.
    #[inline]
    fn is_crowded(&self) -> bool {
        self.mask == 0 && self.shards[0].entries.len() >= shard::CROWDED
    }

    /// Whether the next snapshot holds all of the state: not, when files hold what was restored.
    pub(super) fn set_whole(&mut self, whole: bool) {
        self.tracker.set_whole(&mut self.shards, whole);
    }

    /// A barrier: what the table holds now is what [`collect`](Self::collect) sends from now on, whatever changes
    /// meanwhile. `None` when nothing has changed since the last one.
    pub(super) fn close(&mut self) -> Option<Closed<K, V>> {
        self.tracker.close(&mut self.shards)
    }

    /// Collects until a time or until enough is unread, or to the end.
    pub(super) fn collect(&mut self, until: Option<Instant>) -> Left {
        self.tracker.collect(&mut self.shards, until)
    }
}

impl<K, V> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

#[inline(never)]
pub(super) fn insert<'t, K: StoredKey, V>(
    entries: &'t mut HashTable<Entry<K, V>>,
    marks: &mut Marks,
    tracker: &mut Tracker<K, V>,
    number: usize,
    hash: u64,
    new: Entry<K, V>,
) -> &'t mut Entry<K, V> {
    make_room(entries, marks, tracker, number);
    let inserted = entries.insert_unique(hash, new, shard::rehash);
    tracker.inserted(marks, inserted.bucket_index());
    inserted.into_mut()
}

/// Lets a full shard grow, or clean up: both move its entries.
#[inline]
fn make_room<K: StoredKey, V>(
    entries: &mut HashTable<Entry<K, V>>,
    marks: &mut Marks,
    tracker: &mut Tracker<K, V>,
    number: usize,
) {
    if entries.len() == entries.capacity() {
        shard::grow(entries, marks, &mut tracker.stored[number]);
        tracker.moved(number);
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
