//! The entries of a table, in many small hash tables.
//!
//! A hash table that grows moves all of its entries at once, which for 10 million of them takes half a second. Two
//! hundred tables of a two-hundredth each are as fast to search, since their headers stay in the first-level cache,
//! and each grows in about a millisecond.

use hashbrown::HashTable;

use super::{StoredKey, hash, track::Mark};

pub(super) const SHARDS: usize = 256;

pub(super) type Shard<K, V> = HashTable<Entry<K, V>>;
pub(super) type Shards<K, V> = Box<[Shard<K, V>; SHARDS]>;

/// A key with its value, and what the next checkpoint has to know of them.
#[derive(Debug)]
pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
    pub(super) mark: Mark,
    /// Whether a checkpoint holds the key, so that its removal has to be written down.
    pub(super) stored: bool,
}

pub(super) fn empty<K, V>() -> Shards<K, V> {
    Box::new(std::array::from_fn(|_| HashTable::new()))
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
