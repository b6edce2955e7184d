//! What has changed since the last checkpoint, and how it is collected while the worker goes on.
//!
//! An entry that changes for the first time in an epoch gets a bit. At the barrier the bits are put aside; the entries
//! are copied afterwards, slice by slice between batches. Whoever is about to change an entry that is still to be
//! copied has it copied first, so what is collected is the state at the barrier.
//!
//! Bits take time where most of the state changes from barrier to barrier, and then they say nothing. So there they are
//! kept only while entries are still to be copied, and otherwise only in a sample of the shards, by which is seen when
//! that ends.

use std::time::Instant;

use hashbrown::{HashTable, hash_table::OccupiedEntry};

use super::{
    chunks::{CHUNK_BYTES, Chunk, ChunkSender, Chunks, chunks},
    shard::{Bits, Entry, Marks, SHARDS, Shard, Shards, no_bits},
};

/// An entry in its shard.
pub(super) type Found<'t, K, V> = OccupiedEntry<'t, Entry<K, V>>;

/// After so many steps the clock is looked at.
const STEPS: usize = 32;
/// One shard of so many belongs to the sample.
const SAMPLED: usize = 16;
/// The sample says nothing if fewer entries than this are in it.
const SAMPLE: usize = if cfg!(test) { 32 } else { 1024 };

/// How much of the state at a barrier is left to be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    Some,
    /// Some, when more of what is collected has been encoded.
    Unread,
}

#[cfg(test)]
impl Left {
    pub(crate) fn is_nothing(self) -> bool {
        self == Left::Nothing
    }
}

/// What a barrier leaves to be encoded.
pub(super) struct Closed<K, V> {
    /// Whether it is all of the state, and not only what has changed.
    pub(super) whole: bool,
    pub(super) chunks: Chunks<K, V>,
}

/// What is being collected.
struct Collection<K, V> {
    shard: usize,
    /// How far we are in the shard: 64 buckets each.
    at: usize,
    chunk: Vec<(K, V)>,
    to: ChunkSender<K, V>,
}

impl<K, V> Collection<K, V> {
    const CHUNK: usize = match CHUNK_BYTES / size_of::<(K, V)>().next_power_of_two() {
        0 => 1,
        entries => entries,
    };

    fn push(&mut self, copy: (K, V)) {
        self.chunk.push(copy);
        self.send_full();
    }

    #[inline]
    fn send_full(&mut self) {
        if self.chunk.len() >= Self::CHUNK {
            // A little more, for the last entries come up to 64 at a time.
            self.send(Vec::with_capacity(Self::CHUNK + 64));
        }
    }

    fn send(&mut self, next: Vec<(K, V)>) {
        self.to.send(Chunk::Changed(std::mem::replace(&mut self.chunk, next)));
    }
}

/// Follows the changes of a table.
pub(super) struct Tracker<K, V> {
    /// Of each entry, whether a checkpoint holds its key, so that its removal has to be written down. Not set of empty
    /// buckets.
    pub(super) stored: Box<[Bits; SHARDS]>,
    /// How many entries have changed in this epoch, as far as bits are kept.
    changed: usize,
    /// Most of the state changes from barrier to barrier: bits are kept no longer than needed.
    most_changes: bool,
    /// Keys that a checkpoint holds and that were removed in this epoch.
    removed: Vec<K>,
    /// The next snapshot holds all of the state.
    whole: bool,
    collection: Option<Collection<K, V>>,
    copy: fn(&Entry<K, V>) -> (K, V),
    copy_all: CopyAll<K, V>,
}

/// Copies of the 64 entries from a bucket on those that have a bit. Returns which there are.
type CopyAll<K, V> = fn(&HashTable<Entry<K, V>>, usize, u64, &mut Vec<(K, V)>) -> u64;

impl<K: Clone, V: Clone> Tracker<K, V> {
    pub(super) fn new() -> Self {
        Tracker {
            stored: no_bits(),
            changed: 0,
            most_changes: false,
            removed: Vec::new(),
            whole: true,
            collection: None,
            copy,
            copy_all,
        }
    }
}

fn copy<K: Clone, V: Clone>(Entry { key, value }: &Entry<K, V>) -> (K, V) {
    (key.clone(), value.clone())
}

fn copy_all<K: Clone, V: Clone>(
    entries: &HashTable<Entry<K, V>>,
    first: usize,
    mut bits: u64,
    copies: &mut Vec<(K, V)>,
) -> u64 {
    let mut there = 0;
    while bits != 0 {
        let bit = bits.trailing_zeros();
        if let Some(entry) = entries.get_bucket(first + bit as usize) {
            copies.push(copy(entry));
            there |= 1 << bit;
        }
        bits &= bits - 1;
    }
    there
}

impl<K, V> Tracker<K, V> {
    /// The next snapshot holds all of the state, or, after a restore, only what changes from here on.
    pub(super) fn set_whole(&mut self, shards: &mut Shards<K, V>, whole: bool) {
        self.whole = whole;
        if !whole {
            shards.iter_mut().for_each(|shard| shard.marks.all_changed = false);
        }
    }

    /// An entry is about to change.
    #[inline(always)]
    pub(super) fn change<'t>(
        &mut self,
        number: usize,
        marks: &mut Marks,
        found: Found<'t, K, V>,
    ) -> &'t mut Entry<K, V> {
        let bucket = found.bucket_index();
        let entry = found.into_mut();
        if marks.is_new_change(bucket) {
            self.first_change(number, marks, bucket, entry);
        }
        entry
    }

    /// An entry is about to change for the first time in this epoch.
    #[inline(never)]
    fn first_change(&mut self, number: usize, marks: &mut Marks, bucket: usize, entry: &Entry<K, V>) {
        if marks.take_pending(bucket) {
            self.save(number, bucket, entry);
        }
        marks.set_changed(bucket);
        self.changed += 1;
    }

    /// Copies what is to be collected before it changes.
    fn save(&mut self, number: usize, bucket: usize, entry: &Entry<K, V>) {
        if let Some(collection) = &mut self.collection {
            collection.push((self.copy)(entry));
            self.stored[number].set(bucket);
        }
    }

    /// An entry has been put there that was not known before.
    #[inline]
    pub(super) fn inserted(&mut self, marks: &mut Marks, bucket: usize) {
        if marks.all_changed {
            return;
        }
        // The bit may be left of an entry that was there before, or of none. Nothing is pending but while something is
        // collected.
        if self.collection.is_some() {
            marks.take_pending(bucket);
        }
        marks.set_changed(bucket);
        self.changed += 1;
    }

    /// An entry of a checkpoint has been put there.
    pub(super) fn restored(&mut self, number: usize, marks: &mut Marks, bucket: usize) {
        marks.take_pending(bucket);
        marks.take_changed(bucket);
        self.stored[number].set(bucket);
    }

    /// As [`change`](Self::change), of an entry that may still be removed.
    #[inline(always)]
    pub(super) fn change_in_place(&mut self, number: usize, marks: &mut Marks, found: &Found<'_, K, V>) {
        let bucket = found.bucket_index();
        if marks.is_new_change(bucket) {
            self.first_change(number, marks, bucket, found.get());
        }
    }

    /// Takes an entry out.
    #[inline]
    pub(super) fn remove(&mut self, number: usize, marks: &mut Marks, found: Found<'_, K, V>) -> V {
        self.remove_with(number, marks, found, |_, _| ()).0
    }

    /// Takes an entry out, and does something last with it.
    #[inline]
    pub(super) fn remove_with<R>(
        &mut self,
        number: usize,
        marks: &mut Marks,
        found: Found<'_, K, V>,
        last: impl FnOnce(&K, &mut V) -> R,
    ) -> (V, R) {
        let bucket = found.bucket_index();
        if !marks.all_changed {
            if marks.take_pending(bucket) {
                self.save(number, bucket, found.get());
            }
            if marks.take_changed(bucket) {
                self.changed -= 1;
            }
        }
        let (Entry { key, mut value }, _) = found.remove();
        let result = last(&key, &mut value);
        if self.stored[number].take(bucket) {
            self.removed.push(key);
        }
        (value, result)
    }

    /// The entries of a shard have moved: what is left there to be collected is anywhere.
    pub(super) fn moved(&mut self, number: usize) {
        if let Some(collection) = &mut self.collection
            && collection.shard == number
        {
            collection.at = 0;
        }
    }

    /// Entries have moved to other shards: what is left to be collected is in any of them.
    pub(super) fn moved_all(&mut self) {
        if let Some(collection) = &mut self.collection {
            (collection.shard, collection.at) = (0, 0);
        }
    }

    /// All entries have been taken out.
    pub(super) fn emptied(&mut self) {
        self.stored = no_bits();
        self.removed.clear();
        (self.changed, self.most_changes, self.whole) = (0, false, true);
    }

    /// Ends the epoch: what `shards` hold now is what the following calls of [`collect`](Self::collect) send. `None`
    /// when nothing has changed.
    pub(super) fn close(&mut self, shards: &mut Shards<K, V>) -> Option<Closed<K, V>> {
        // Only when a checkpoint was given up before all was collected for it.
        self.collect(shards, None);
        let changed = self.changed + self.removed.len();
        let unknown = shards.iter().any(|shard| shard.marks.all_changed);
        if changed == 0 && !self.whole && !unknown {
            return None;
        }
        // Half of the state costs half as much as all of it, and all of it needs nothing else to be read again.
        let whole =
            self.whole || unknown || 2 * changed >= shards.iter().map(|shard| shard.entries.len()).sum();
        self.most_changes = whole && most_of_sample_changed(shards);
        // Nothing is pending by now.
        shards.iter_mut().for_each(|shard| shard.marks.close(whole));
        let (to, chunks) = chunks();
        if !self.removed.is_empty() {
            to.send(Chunk::Removed(std::mem::take(&mut self.removed)));
        }
        (self.changed, self.whole) = (0, false);
        self.collection = Some(Collection { shard: 0, at: 0, chunk: Vec::new(), to });
        Some(Closed { whole, chunks })
    }

    /// Collects until a time or until enough is unread, or to the end.
    pub(super) fn collect(&mut self, shards: &mut Shards<K, V>, until: Option<Instant>) -> Left {
        let Some(collection) = &mut self.collection else { return Left::Nothing };
        let mut steps = 0;
        while let Some(Shard { entries, marks }) = shards.get_mut(collection.shard) {
            let stored = self.stored[collection.shard].words();
            while let (Some(pending), Some(stored)) =
                (marks.take_pending_64(collection.at), stored.get_mut(collection.at))
            {
                if pending != 0 {
                    let there = (self.copy_all)(entries, collection.at * 64, pending, &mut collection.chunk);
                    *stored |= there;
                    steps += there.count_ones() as usize;
                    collection.send_full();
                }
                steps += 1;
                collection.at += 1;
                if steps >= STEPS {
                    if let Some(until) = until {
                        if collection.to.is_full() {
                            return Left::Unread;
                        }
                        if Instant::now() >= until {
                            return Left::Some;
                        }
                    }
                    steps = 0;
                }
            }
            marks.all_changed = self.most_changes && !is_sampled(collection.shard);
            (collection.shard, collection.at) = (collection.shard + 1, 0);
        }
        if !collection.chunk.is_empty() {
            collection.send(Vec::new());
        }
        collection.to.send(Chunk::End);
        self.collection = None;
        Left::Nothing
    }
}

fn is_sampled(shard: usize) -> bool {
    shard.is_multiple_of(SAMPLED)
}

/// Whether at least half of the entries have changed in this epoch, by those whose bits are always kept.
fn most_of_sample_changed<K, V>(shards: &Shards<K, V>) -> bool {
    let sample = || shards.iter().step_by(SAMPLED).filter(|shard| !shard.marks.all_changed);
    let entries: usize = sample().map(|shard| shard.entries.len()).sum();
    let changed: usize = sample().map(|shard| shard.marks.count_changed()).sum();
    entries >= SAMPLE && 2 * changed >= entries
}
