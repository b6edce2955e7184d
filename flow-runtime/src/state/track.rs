//! What has changed since the last checkpoint, and how it is collected while the worker goes on.
//!
//! An entry that changes for the first time in an epoch is marked, and its place noted. At the barrier only the notes
//! are put aside; the entries are copied afterwards, slice by slice between batches. Whoever is about to change an
//! entry that is still to be copied has it copied first, so what is collected is the state at the barrier.

use std::{sync::mpsc, time::Instant};

use hashbrown::hash_table::OccupiedEntry;

use super::shard::{Entry, SHARDS, Shard};

/// Two marks take turns for the epoch in which an entry changed, and two for "unchanged since it was collected". While
/// nothing is being collected, every entry carries the current one of either pair; so whatever carries another one is
/// still to be collected.
pub(super) type Mark = u8;

const EPOCHS: [Mark; 2] = [1, 2];
const CLEAN: [Mark; 2] = [0, 3];

/// An entry in its shard.
pub(super) type Found<'t, K, V> = OccupiedEntry<'t, Entry<K, V>>;

/// Entries are sent to where they are encoded when so many bytes are together.
const CHUNK_BYTES: usize = 64 << 10;
/// After so many steps the clock is looked at.
const STEPS: usize = 32;

/// Of the state at a barrier, some.
pub(super) enum Chunk<K, V> {
    /// Keys that were removed in the epoch, whether they were put again or not. Come before all entries.
    Removed(Vec<K>),
    Changed(Vec<(K, V)>),
    /// Nothing is missing.
    End,
}

/// What a barrier leaves to be encoded.
pub(super) struct Closed<K, V> {
    /// Whether it is all of the state, and not only what has changed.
    pub(super) whole: bool,
    pub(super) chunks: mpsc::Receiver<Chunk<K, V>>,
}

/// The notes of one epoch on one shard.
struct Changes<K> {
    /// The buckets of entries that have changed. Some may hold another entry by now, or none.
    buckets: Vec<u32>,
    /// Buckets were not noted, or have moved: all of the shard is searched.
    scan: bool,
    removed: Vec<K>,
}

fn no_changes<K>() -> Vec<Changes<K>> {
    (0..SHARDS).map(|_| Changes { buckets: Vec::new(), scan: false, removed: Vec::new() }).collect()
}

/// What is being collected.
struct Collection<K, V> {
    whole: bool,
    changes: Vec<Changes<K>>,
    shard: usize,
    /// How far we are in the shard: among its buckets, or in the notes.
    at: usize,
    chunk: Vec<(K, V)>,
    to: mpsc::Sender<Chunk<K, V>>,
}

impl<K, V> Collection<K, V> {
    const CHUNK: usize = match CHUNK_BYTES / size_of::<(K, V)>().next_power_of_two() {
        0 => 1,
        entries => entries,
    };

    fn push(&mut self, copy: (K, V)) {
        self.chunk.push(copy);
        if self.chunk.len() == Self::CHUNK {
            self.send(Vec::with_capacity(Self::CHUNK));
        }
    }

    fn send(&mut self, next: Vec<(K, V)>) {
        // Nobody listens when the attempt is over.
        let _ = self.to.send(Chunk::Changed(std::mem::replace(&mut self.chunk, next)));
    }
}

/// Follows the changes of a table.
pub(super) struct Tracker<K, V> {
    pub(super) now: Mark,
    clean: Mark,
    changes: Vec<Changes<K>>,
    /// From this many notes on a shard is searched instead.
    limits: Vec<usize>,
    /// Emptied notes of the epoch before, whose memory is used again.
    spare: Option<Vec<Changes<K>>>,
    /// How many entries have changed in this epoch, and how many that are stored were removed.
    changed: usize,
    removed: usize,
    /// The next snapshot holds all of the state.
    whole: bool,
    collection: Option<Collection<K, V>>,
    copy: fn(&K, &V) -> (K, V),
}

impl<K, V> Tracker<K, V> {
    pub(super) fn new(copy: fn(&K, &V) -> (K, V)) -> Self {
        Tracker {
            now: EPOCHS[0],
            clean: CLEAN[0],
            changes: no_changes(),
            limits: vec![0; SHARDS],
            spare: None,
            changed: 0,
            removed: 0,
            whole: true,
            collection: None,
            copy,
        }
    }

    /// The mark of an entry that the last checkpoint holds.
    pub(super) fn clean(&self) -> Mark {
        self.clean
    }

    /// The next snapshot holds all of the state, or, after a restore, only what changes from here on.
    pub(super) fn set_whole(&mut self, whole: bool) {
        self.whole = whole;
    }

    /// An entry is about to change.
    #[inline(always)]
    pub(super) fn change<'t>(&mut self, shard: usize, found: Found<'t, K, V>) -> &'t mut Entry<K, V> {
        if found.get().mark == self.now { found.into_mut() } else { self.first_change(shard, found) }
    }

    /// An entry is about to change for the first time in this epoch.
    #[cold]
    #[inline(never)]
    fn first_change<'t>(&mut self, shard: usize, mut found: Found<'t, K, V>) -> &'t mut Entry<K, V> {
        self.first_change_in_place(shard, &mut found);
        found.into_mut()
    }

    /// As [`change`](Self::change), for an entry that may be removed after that.
    #[inline(always)]
    pub(super) fn change_in_place(&mut self, shard: usize, found: &mut Found<'_, K, V>) {
        if found.get().mark != self.now {
            self.first_change_in_place(shard, found);
        }
    }

    #[cold]
    #[inline(never)]
    fn first_change_in_place(&mut self, shard: usize, found: &mut Found<'_, K, V>) {
        let bucket = found.bucket_index();
        let entry = found.get_mut();
        self.save(&entry.key, &entry.value, entry.mark, &mut entry.stored);
        entry.mark = self.now;
        self.note(shard, bucket);
    }

    /// Notes a change, of an entry that carries the mark of this epoch now.
    pub(super) fn note(&mut self, shard: usize, bucket: usize) {
        self.changed += 1;
        let (changes, limit) = (&mut self.changes[shard], self.limits[shard]);
        match u32::try_from(bucket) {
            Ok(bucket) if !changes.scan && changes.buckets.len() < limit => changes.buckets.push(bucket),
            _ => changes.scan = true,
        }
    }

    /// Copies what is to be collected before it changes.
    fn save(&mut self, key: &K, value: &V, mark: Mark, stored: &mut bool) {
        if mark != self.now && mark != self.clean {
            if let Some(collection) = &mut self.collection {
                collection.push((self.copy)(key, value));
            }
            *stored = true;
        }
    }

    /// An entry has been taken out. Returns its value.
    pub(super) fn remove(&mut self, shard: usize, mut entry: Entry<K, V>) -> V {
        self.save_removed(&mut entry);
        self.note_removed(shard, entry)
    }

    /// An entry has been taken out, and its value may change.
    #[inline(always)]
    pub(super) fn save_removed(&mut self, entry: &mut Entry<K, V>) {
        self.save(&entry.key, &entry.value, entry.mark, &mut entry.stored);
    }

    /// An entry has been taken out and is [saved](Self::save_removed). Returns its value.
    #[inline(always)]
    pub(super) fn note_removed(&mut self, shard: usize, entry: Entry<K, V>) -> V {
        let Entry { key, value, mark, stored } = entry;
        if mark == self.now {
            self.changed -= 1;
        }
        if stored {
            self.changes[shard].removed.push(key);
            self.removed += 1;
        }
        value
    }

    /// The buckets of a shard are about to change: its part of the collection ends here, and notes are void.
    pub(super) fn before_growth(&mut self, number: usize, shard: &mut Shard<K, V>) {
        if let Some(collection) = &mut self.collection
            && collection.shard <= number
        {
            let mut at = if collection.shard == number { collection.at } else { 0 };
            let marks = (self.now, self.clean);
            collect(collection, number, &mut at, shard, marks, self.copy, &mut Pace::until(None));
            collection.changes[number].buckets.clear();
            if collection.shard == number {
                (collection.shard, collection.at) = (number + 1, 0);
            }
        }
        let changes = &mut self.changes[number];
        changes.scan |= !changes.buckets.is_empty();
        changes.buckets.clear();
    }

    /// A shard has grown to so many buckets. Searching some of them costs as much as following a note.
    pub(super) fn after_growth(&mut self, number: usize, buckets: usize) {
        self.limits[number] = buckets / 8;
    }

    /// All entries have been taken out.
    pub(super) fn emptied(&mut self) {
        self.changes = no_changes();
        self.limits.fill(0);
        (self.changed, self.removed, self.whole) = (0, 0, true);
    }

    /// Ends the epoch: what `shards` hold now is what the following calls of [`collect`](Self::collect) send. `None`
    /// when nothing has changed.
    pub(super) fn close(&mut self, shards: &mut [Shard<K, V>; SHARDS]) -> Option<Closed<K, V>> {
        // Only when a checkpoint was given up before all was collected for it.
        self.collect(shards, None);
        let changed = self.changed + self.removed;
        if changed == 0 && !self.whole {
            return None;
        }
        // Half of the state costs half as much as all of it, and all of it needs nothing else to be read again.
        let whole = self.whole || 2 * changed >= shards.iter().map(Shard::len).sum();
        let (to, chunks) = mpsc::channel();
        let mut changes = self.spare.take().unwrap_or_else(no_changes);
        std::mem::swap(&mut changes, &mut self.changes);
        for removed in changes.iter_mut().map(|changes| &mut changes.removed).filter(|keys| !keys.is_empty())
        {
            let _ = to.send(Chunk::Removed(std::mem::take(removed)));
        }
        self.now = EPOCHS[usize::from(self.now == EPOCHS[0])];
        if whole {
            self.clean = CLEAN[usize::from(self.clean == CLEAN[0])];
        }
        (self.changed, self.removed, self.whole) = (0, 0, false);
        self.collection = Some(Collection { whole, changes, shard: 0, at: 0, chunk: Vec::new(), to });
        Some(Closed { whole, chunks })
    }

    /// Collects until a time, or to the end. Returns whether nothing is left.
    pub(super) fn collect(&mut self, shards: &mut [Shard<K, V>; SHARDS], until: Option<Instant>) -> bool {
        let Some(collection) = &mut self.collection else { return true };
        let mut pace = Pace::until(until);
        while let Some(shard) = shards.get_mut(collection.shard) {
            let (number, mut at) = (collection.shard, collection.at);
            let marks = (self.now, self.clean);
            let done = collect(collection, number, &mut at, shard, marks, self.copy, &mut pace);
            if !done {
                collection.at = at;
                return false;
            }
            (collection.shard, collection.at) = (number + 1, 0);
        }
        if !collection.chunk.is_empty() {
            collection.send(Vec::new());
        }
        let _ = collection.to.send(Chunk::End);
        if let Some(Collection { mut changes, .. }) = self.collection.take() {
            for changes in &mut changes {
                changes.buckets.clear();
                changes.scan = false;
            }
            self.spare = Some(changes);
        }
        true
    }
}

/// Ends a slice.
struct Pace {
    until: Option<Instant>,
    steps: usize,
}

impl Pace {
    fn until(until: Option<Instant>) -> Self {
        Pace { until, steps: 0 }
    }

    /// Counts a step. Returns whether it was the last one.
    #[inline]
    fn is_over(&mut self) -> bool {
        self.steps += 1;
        self.steps.is_multiple_of(STEPS) && self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Collects of one shard, from `at`. Returns whether nothing is left there.
fn collect<K, V>(
    collection: &mut Collection<K, V>,
    number: usize,
    at: &mut usize,
    shard: &mut Shard<K, V>,
    (now, clean): (Mark, Mark),
    copy: fn(&K, &V) -> (K, V),
    pace: &mut Pace,
) -> bool {
    let by_notes = !collection.whole && !collection.changes[number].scan;
    let end = if by_notes { collection.changes[number].buckets.len() } else { shard.num_buckets() };
    while *at < end {
        let bucket = if by_notes { collection.changes[number].buckets[*at] as usize } else { *at };
        *at += 1;
        if let Some(entry) = shard.get_bucket_mut(bucket).filter(|e| e.mark != now && e.mark != clean) {
            entry.mark = clean;
            entry.stored = true;
            collection.push(copy(&entry.key, &entry.value));
        }
        if pace.is_over() {
            return false;
        }
    }
    true
}
