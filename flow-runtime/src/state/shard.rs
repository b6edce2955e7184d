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
    /// Has changed since the last barrier.
    pub(super) changed: Bits,
    /// Is to be copied for the snapshot that is being collected.
    pub(super) pending: Bits,
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
        let (word, bit) = (&mut self.0[bucket / 64], 1 << (bucket % 64));
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// How many bits are set.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The bits of 64 buckets each.
    pub(super) fn words(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

impl Marks {
    /// Whether an entry changes for the first time in this epoch, which has to be noted.
    #[inline(always)]
    pub(super) fn is_new_change(&self, bucket: usize) -> bool {
        !self.all_changed && !self.changed.get(bucket)
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
    let all = |_| Bits::of(moved.num_buckets());
    let [mut changed, mut pending, mut still_stored] = [(); 3].map(all);
    for bucket in 0..buckets {
        let Ok(found) = entries.get_bucket_entry(bucket) else { continue };
        let (entry, _) = found.remove();
        let to = moved.insert_unique(hash(&entry.key), entry, rehash).bucket_index();
        let bits =
            [(&marks.changed, &mut changed), (&marks.pending, &mut pending), (stored, &mut still_stored)];
        for (from, bits) in bits {
            if from.get(bucket) {
                bits.set(to);
            }
        }
    }
    *entries = moved;
    *marks = Marks { changed, pending, ..*marks };
    *stored = still_stored;
}
