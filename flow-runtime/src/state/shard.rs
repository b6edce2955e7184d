//! The entries of a table, in many small hash tables.
//!
//! A hash table that grows moves all of its entries at once, which for 10 million of them takes half a second. Two
//! hundred tables of a two-hundredth each are as fast to search, since their headers stay in the first-level cache,
//! and each grows in about a millisecond.
//!
//! As long as there are few of them, they are all in the first one: headers and ends of many tables would take the place in
//! the first-level cache that entries need.
//!
//! What the next checkpoint has to know of an entry are bits beside the table, one per bucket: an entry is as large as
//! the key and the value, and the bits of 10 million of them fit into the second-level cache. Yet another line of the
//! cache per record is a quarter of its time, so bits are not looked at where they would say nothing.

use hashbrown::HashTable;

use super::{StoredKey, hash};

pub(super) const SHARDS: usize = 256;

/// So many entries are spread over all shards, before a batch.
pub(super) const CROWDED: usize = if cfg!(test) { 48 } else { 12_288 };

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
    /// Which of the two words says what has changed since the last barrier; the other one says what is to be copied for the
    /// snapshot that is being collected. A barrier lets them change places.
    turn: bool,
    /// The words of 64 buckets each, beside each other, since whoever looks at one bit of a bucket mostly looks at the
    /// other, too.
    notes: Box<[[u64; 2]]>,
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
        !self.all_changed && self.notes[bucket / 64][usize::from(self.turn)] >> (bucket % 64) & 1 == 0
    }

    /// The bits of a bucket.
    fn notes(&self, bucket: usize) -> [u64; 2] {
        self.notes[bucket / 64].map(|word| word >> (bucket % 64) & 1)
    }

    #[inline(always)]
    fn changed(&mut self, bucket: usize) -> &mut u64 {
        &mut self.notes[bucket / 64][usize::from(self.turn)]
    }

    #[inline(always)]
    fn pending(&mut self, bucket: usize) -> &mut u64 {
        &mut self.notes[bucket / 64][usize::from(!self.turn)]
    }

    #[inline]
    pub(super) fn set_changed(&mut self, bucket: usize) {
        *self.changed(bucket) |= 1 << (bucket % 64);
    }

    #[inline]
    pub(super) fn take_changed(&mut self, bucket: usize) -> bool {
        take(self.changed(bucket), bucket)
    }

    #[inline]
    pub(super) fn take_pending(&mut self, bucket: usize) -> bool {
        take(self.pending(bucket), bucket)
    }

    /// Takes out which of 64 buckets are to be copied; none of those behind the last.
    #[inline]
    pub(super) fn take_pending_64(&mut self, at: usize) -> Option<u64> {
        Some(std::mem::take(&mut self.notes.get_mut(at)?[usize::from(!self.turn)]))
    }

    /// How many entries have changed, as far as bits are kept.
    pub(super) fn count_changed(&self) -> usize {
        self.notes.iter().map(|notes| notes[usize::from(self.turn)].count_ones() as usize).sum()
    }

    /// A barrier, when nothing is to be copied for an earlier one: what has changed is to be copied now, or `all`.
    pub(super) fn close(&mut self, all: bool) {
        (self.all_changed, self.turn) = (false, !self.turn);
        if all {
            self.notes.fill({
                let mut notes = [0; 2];
                notes[usize::from(!self.turn)] = u64::MAX;
                notes
            });
        }
    }
}

impl<K, V> Shard<K, V> {
    /// What comes before the first snapshot is in it anyway.
    fn new() -> Self {
        Shard { entries: HashTable::new(), marks: Marks { all_changed: true, ..Marks::default() } }
    }

    fn with_capacity(capacity: usize, marks: &Marks) -> Self {
        let entries = HashTable::with_capacity(capacity);
        let notes = vec![[0; 2]; entries.num_buckets().div_ceil(64)].into_boxed_slice();
        Shard { entries, marks: Marks { all_changed: marks.all_changed, turn: marks.turn, notes } }
    }
}

impl<K: StoredKey, V> Shard<K, V> {
    /// Puts an entry there that has been in another table of the same turn, with its bits.
    fn put(&mut self, stored: &mut Bits, entry: Entry<K, V>, notes: [u64; 2], is_stored: bool) {
        let bucket = self.entries.insert_unique(hash(&entry.key), entry, rehash).bucket_index();
        for (bits, bit) in self.marks.notes[bucket / 64].iter_mut().zip(notes) {
            *bits |= bit << (bucket % 64);
        }
        if is_stored {
            stored.set(bucket);
        }
    }
}

pub(super) fn empty<K, V>() -> Shards<K, V> {
    Box::new(std::array::from_fn(|_| Shard::new()))
}

/// For the bits that are kept beside the shards.
pub(super) fn no_bits() -> Box<[Bits; SHARDS]> {
    Box::new(std::array::from_fn(|_| Bits::default()))
}

/// The shard of a hash, where entries are in all shards. The bits are above those that choose the bucket in a shard, and
/// below those that choose the key group: the keys of a subtask share the latter.
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
    let mut moved = Shard::with_capacity(capacity, marks);
    let mut still_stored = Bits::of(moved.entries.num_buckets());
    for bucket in 0..buckets {
        let Ok(found) = entries.get_bucket_entry(bucket) else { continue };
        let (entry, _) = found.remove();
        moved.put(&mut still_stored, entry, marks.notes(bucket), stored.get(bucket));
    }
    (*entries, *marks, *stored) = (moved.entries, moved.marks, still_stored);
}

/// Moves the entries of the first shard to all of them, with their bits.
pub(super) fn spread<K: StoredKey, V>(shards: &mut Shards<K, V>, stored: &mut [Bits; SHARDS]) {
    let Shard { mut entries, marks } = std::mem::replace(&mut shards[0], Shard::new());
    let was_stored = std::mem::take(&mut stored[0]);
    // A few more than their share, for some get more than others.
    let capacity = entries.len() / SHARDS + 8;
    for (shard, stored) in shards.iter_mut().zip(stored.iter_mut()) {
        *shard = Shard::with_capacity(capacity, &marks);
        *stored = Bits::of(shard.entries.num_buckets());
    }
    for bucket in 0..entries.num_buckets() {
        let Ok(found) = entries.get_bucket_entry(bucket) else { continue };
        let (entry, _) = found.remove();
        let number = of(hash(&entry.key));
        let (shard, stored) = (&mut shards[number], &mut stored[number]);
        if shard.entries.len() == shard.entries.capacity() {
            grow(&mut shard.entries, &mut shard.marks, stored);
        }
        shard.put(stored, entry, marks.notes(bucket), was_stored.get(bucket));
    }
}
