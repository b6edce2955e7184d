//! The entries of a table, in many small hash tables.
//!
//! A hash table that grows moves all of its entries at once, which for 10 million of them takes half a second. Two
//! hundred tables of a two-hundredth each are as fast to search, since their headers stay in the first-level cache,
//! and each grows in about a millisecond.
//!
//! What the next checkpoint has to know of an entry are bits beside the table, one per bucket: an entry is as large as
//! the key and the value, and the bits of 10 million of them fit into the second-level cache. Yet another line of the
//! cache per record is a quarter of its time, so bits are not looked at where they would say nothing.

use hashbrown::HashTable;

use super::{StoredKey, hash};

pub(super) const SHARDS: usize = 256;

pub(super) type Shards<K, V> = Box<[Shard<K, V>; SHARDS]>;

/// A key with its value.
#[derive(Debug)]
pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

/// A small hash table. What a known key is found by is in one line of the cache.
#[repr(align(64))]
pub(super) struct Shard<K, V> {
    pub(super) entries: HashTable<Entry<K, V>>,
    pub(super) marks: Marks,
}

/// What is known of the entries, by bucket. Bits of empty buckets mean nothing.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// All entries count as changed, whatever their bits say, and none is to be copied.
    pub(super) all_changed: bool,
    notes: Box<[Notes]>,
}

/// The bits of 64 buckets, beside each other, since whoever looks at one of a bucket mostly looks at the other, too.
#[derive(Clone, Copy, Debug, Default)]
struct Notes {
    /// Has changed since the last barrier.
    changed: u64,
    /// Is to be copied for the snapshot that is being collected.
    pending: u64,
}

/// A bit per bucket.
#[derive(Debug, Default)]
pub(super) struct Bits(Box<[u64]>);

impl Bits {
    fn of(buckets: usize) -> Self {
        Bits(vec![0; buckets.div_ceil(64)].into_boxed_slice())
    }

    #[inline(always)]
    pub(super) fn get(&self, bucket: usize) -> bool {
        self.0[bucket / 64] >> (bucket % 64) & 1 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, bucket: usize) {
        self.0[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Clears the bit. Returns what it was.
    #[inline]
    pub(super) fn take(&mut self, bucket: usize) -> bool {
        take(&mut self.0[bucket / 64], bucket)
    }

    /// The bits of 64 buckets each.
    pub(super) fn words(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

/// Clears the bit of a bucket in its word. Returns what it was.
#[inline]
fn take(word: &mut u64, bucket: usize) -> bool {
    let bit = 1 << (bucket % 64);
    let was = *word & bit != 0;
    *word &= !bit;
    was
}

impl Marks {
    /// Whether an entry changes for the first time in this epoch, which has to be noted.
    #[inline(always)]
    pub(super) fn is_new_change(&self, bucket: usize) -> bool {
        !self.all_changed && self.notes[bucket / 64].changed >> (bucket % 64) & 1 == 0
    }

    #[inline]
    pub(super) fn set_changed(&mut self, bucket: usize) {
        self.notes[bucket / 64].changed |= 1 << (bucket % 64);
    }

    #[inline]
    pub(super) fn take_changed(&mut self, bucket: usize) -> bool {
        take(&mut self.notes[bucket / 64].changed, bucket)
    }

    #[inline]
    pub(super) fn take_pending(&mut self, bucket: usize) -> bool {
        take(&mut self.notes[bucket / 64].pending, bucket)
    }

    /// Takes out which of 64 buckets are to be copied; none of those behind the last.
    #[inline]
    pub(super) fn take_pending_64(&mut self, at: usize) -> Option<u64> {
        Some(std::mem::take(&mut self.notes.get_mut(at)?.pending))
    }

    /// How many entries have changed, as far as bits are kept.
    pub(super) fn count_changed(&self) -> usize {
        self.notes.iter().map(|notes| notes.changed.count_ones() as usize).sum()
    }

    /// A barrier, when nothing is to be copied for an earlier one: what has changed is to be copied now, or `all`.
    pub(super) fn close(&mut self, all: bool) {
        self.all_changed = false;
        for Notes { changed, pending } in &mut self.notes {
            let changed = std::mem::take(changed);
            *pending = if all { u64::MAX } else { changed };
        }
    }
}

impl<K, V> Shard<K, V> {
    /// What comes before the first snapshot is in it anyway.
    fn new() -> Self {
        Shard { entries: HashTable::new(), marks: Marks { all_changed: true, ..Marks::default() } }
    }
}

pub(super) fn empty<K, V>() -> Shards<K, V> {
    Box::new(std::array::from_fn(|_| Shard::new()))
}

/// For the bits that are kept beside the shards.
pub(super) fn no_bits() -> Box<[Bits; SHARDS]> {
    Box::new(std::array::from_fn(|_| Bits::default()))
}

/// The shard of a hash. The bits are above those that choose the bucket in a shard, and below those that choose the
/// key group: the keys of a subtask share the latter.
#[inline(always)]
pub(super) fn of(hash: u64) -> usize {
    (hash >> 28) as usize % SHARDS
}

pub(super) fn rehash<K: StoredKey, V>(entry: &Entry<K, V>) -> u64 {
    hash(&entry.key)
}

/// Moves the entries of a full shard to a larger table, or to one of the same size if many were removed. The bits go
/// with them.
#[cold]
#[inline(never)]
pub(super) fn grow<K: StoredKey, V>(
    entries: &mut HashTable<Entry<K, V>>,
    marks: &mut Marks,
    stored: &mut Bits,
) {
    let buckets = entries.num_buckets();
    // What fits into so many buckets.
    let full = if buckets < 8 { buckets - 1 } else { buckets / 8 * 7 };
    let capacity = if entries.len() < full / 2 { full } else { full + 1 };
    let mut moved = HashTable::with_capacity(capacity);
    let mut still_stored = Bits::of(moved.num_buckets());
    let notes = vec![Notes::default(); moved.num_buckets().div_ceil(64)].into_boxed_slice();
    let mut still = Marks { all_changed: marks.all_changed, notes };
    for bucket in 0..buckets {
        let Ok(found) = entries.get_bucket_entry(bucket) else { continue };
        let (entry, _) = found.remove();
        let to = moved.insert_unique(hash(&entry.key), entry, rehash).bucket_index();
        let Notes { changed, pending } = marks.notes[bucket / 64];
        still.notes[to / 64].changed |= (changed >> (bucket % 64) & 1) << (to % 64);
        still.notes[to / 64].pending |= (pending >> (bucket % 64) & 1) << (to % 64);
        if stored.get(bucket) {
            still_stored.set(to);
        }
    }
    *entries = moved;
    *marks = still;
    *stored = still_stored;
}
