//! Records that wait at a table for a moment, so that it can look ahead.
//!
//! In a table that is larger than the processor's caches, each key that is looked up has to be fetched from memory
//! first. A processor fetches a dozen of them at a time if it comes to know of them early enough, which it does not when
//! all of the chain's work lies between one key and the next. So the loop is split there: it puts keys aside, the table
//! fetches the entries of all of them at once, and then the loop goes on with each.

use super::{Key, StoredKey, Table, hash, shard};
use crate::chain::At;

/// How many records wait: about twice as many as are fetched at a time.
const RECORDS: usize = 32;

/// A table of fewer entries than this lies in the caches anyway.
const CACHED: usize = 1 << 14;

/// Keys with what is known of their records, in their order.
#[derive(Debug)]
pub struct Ahead<Q, P> {
    waiting: [Option<Waiting<Q, P>>; RECORDS],
    hashes: [u64; RECORDS],
    len: usize,
}

#[derive(Debug)]
struct Waiting<Q, P> {
    /// The record's number in its batch.
    record: u64,
    key: Q,
    rest: P,
}

impl<Q, P> Default for Ahead<Q, P> {
    #[inline(always)]
    fn default() -> Self {
        Ahead { waiting: [const { None }; RECORDS], hashes: [0; RECORDS], len: 0 }
    }
}

impl<Q, P> Ahead<Q, P> {
    /// Puts the key of the record that the chain is at aside, with the rest that is needed of it. Returns whether there
    /// is no more room.
    #[inline(always)]
    pub fn put(&mut self, at: &At, key: Q, rest: P) -> bool {
        if let Some(place) = self.waiting.get_mut(self.len) {
            *place = Some(Waiting { record: at.record(), key, rest });
            self.len += 1;
        }
        self.len == RECORDS
    }

    /// Takes the records out, in their order: the hash of the key, the key and the rest. The chain is at each in turn,
    /// and then again where it was.
    #[inline(always)]
    pub fn drain(&mut self) -> Drain<'_, Q, P> {
        let len = std::mem::take(&mut self.len);
        Drain { waiting: self.waiting[..len].iter_mut(), hashes: self.hashes[..len].iter() }
    }
}

/// See [`Ahead::drain`].
#[derive(Debug)]
pub struct Drain<'a, Q, P> {
    waiting: std::slice::IterMut<'a, Option<Waiting<Q, P>>>,
    hashes: std::slice::Iter<'a, u64>,
}

impl<Q, P> Iterator for Drain<'_, Q, P> {
    /// The record's number, the hash of its key, the key, and the rest.
    type Item = (u64, u64, Q, P);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let Waiting { record, key, rest } = self.waiting.next()?.take()?;
        Some((record, *self.hashes.next()?, key, rest))
    }
}

impl<K: StoredKey, V> Table<K, V> {
    /// Finds out the hashes of the keys that wait, and lets the processor fetch their entries.
    #[inline(always)]
    pub fn look_ahead<Q: Key<Stored = K>, P>(&self, ahead: &mut Ahead<Q, P>) {
        let Ahead { waiting, hashes, len } = ahead;
        let waiting = || waiting[..*len].iter().flatten();
        for (Waiting { key, .. }, place) in waiting().zip(hashes.iter_mut()) {
            *place = hash(key);
        }
        // The shards are of much the same size.
        if self.shards[0].entries.len() < CACHED / shard::SHARDS {
            return;
        }
        let mut found = 0;
        for (Waiting { key, .. }, hash) in waiting().zip(&*hashes) {
            let entries = &self.shards[shard::of(*hash)].entries;
            // Where the entry is, if no other was there before it; otherwise it is near. Nothing depends on what is
            // found there, so the processor need not wait for it.
            let home = *hash as usize & (entries.num_buckets() - 1);
            found += usize::from(entries.get_bucket(home).is_some_and(|entry| key.is(&entry.key)));
        }
        std::hint::black_box(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts as generated code does.
    fn counts(keys: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let (mut table, mut at, mut results) = (Table::<u64, u64>::new(), At::start(0), Vec::new());
        let mut keys = keys.fuse();
        let mut ahead = Ahead::default();
        let mut more = true;
        while more {
            more = false;
            for key in keys.by_ref() {
                at.next();
                if ahead.put(&at, key, ()) {
                    more = true;
                    break;
                }
            }
            table.look_ahead(&mut ahead);
            for (_, hash, key, ()) in ahead.drain() {
                results.push(table.tally_at(hash, key).unwrap());
            }
        }
        results
    }

    #[test]
    fn keys_that_wait_together_are_counted_one_after_the_other() {
        for records in [0, 1, 31, 32, 33, 100, 200_000u64] {
            let keys = || (0..records).map(|n| n * n % 70_001);
            let mut table = Table::<u64, u64>::new();
            let expected: Vec<_> = keys().map(|key| table.tally(key).unwrap()).collect();
            assert_eq!(counts(keys()), expected);
        }
    }

    #[test]
    fn each_record_keeps_its_number() {
        let (mut at, mut ahead) = (At::start(0), Ahead::default());
        for key in ["a", "b", "c"] {
            at.next();
            assert!(!ahead.put(&at, key, key.len()));
        }
        let records: Vec<_> = ahead.drain().map(|(record, _, key, rest)| (record, key, rest)).collect();
        assert_eq!(records, [(1, "a", 1), (2, "b", 1), (3, "c", 1)]);
        assert_eq!(ahead.drain().count(), 0);
    }
}
