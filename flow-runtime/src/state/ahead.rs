//! Records that wait at a table for a moment, so that it can look ahead.
//!
//! In a table that is larger than the processor's caches, each key that is looked up has to be fetched from memory
//! first. A processor fetches a dozen of them at a time if it comes to know of them early enough, which it does not when
//! all of the chain's work lies between one key and the next. So the loop is split there: it puts keys aside, the table
//! fetches the entries of all of them at once, and then the loop goes on with each.

use hashbrown::{HashTable, hash_table::AbsentEntry};

use super::{Key, StoredKey, Table, hash, shard::Entry, track::Found};
use crate::chain::At;

/// How many records wait: about twice as many as are fetched at a time.
const RECORDS: usize = 32;

/// A table of no more bytes than this lies in the caches that are near anyway, and nothing waits there.
const CACHED: usize = 1 << 20;

/// A record that has come to the table: where its entry is, its key, and the rest that is needed of it.
type Turn<Q, P> = (Spot, Q, P);

/// The entry of a key, or where it would be put.
type Search<'t, K, V> = Result<Found<'t, K, V>, AbsentEntry<'t, Entry<K, V>>>;

/// Where the entry of a key is found: by its hash, and at once where the table has looked ahead.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub(crate) hash: u64,
    /// Where in its shard the entry may lie. Whoever goes there has to compare the key: what was seen may be another
    /// entry with a similar hash, and since then the table may have changed.
    bucket: usize,
}

impl From<u64> for Spot {
    #[inline(always)]
    fn from(hash: u64) -> Self {
        Spot { hash, bucket: usize::MAX }
    }
}

impl Spot {
    /// The entry of `key` in its shard.
    #[inline(always)]
    pub(super) fn find<'t, Q: Key, V>(
        self,
        entries: &'t mut HashTable<Entry<Q::Stored, V>>,
        key: &Q,
    ) -> Search<'t, Q::Stored, V> {
        let entries = match entries.get_bucket_entry(self.bucket) {
            Ok(found) if key.is(&found.get().key) => return Ok(found),
            Ok(another) => another.into_table(),
            Err(absent) => absent.into_table(),
        };
        entries.find_entry(self.hash, |entry| key.is(&entry.key))
    }
}

/// The records of a batch that wait at a table, in their order: first they are put there, until there is no more room,
/// and then they are given out.
#[derive(Debug)]
pub struct Ahead<Q, P> {
    /// Whether they wait at all.
    waits: bool,
    gives_out: bool,
    /// Nothing comes after those that wait.
    ended: bool,
    len: usize,
    next: usize,
    waiting: [Option<Waiting<Q, P>>; RECORDS],
}

#[derive(Debug)]
struct Waiting<Q, P> {
    /// The record's number in its batch.
    record: u64,
    turn: Turn<Q, P>,
}

impl<Q, P> Ahead<Q, P> {
    /// For the records of a batch, which do not wait where the table is small.
    #[inline(always)]
    #[must_use]
    pub fn of<K, V>(table: &Table<K, V>) -> Self {
        Ahead {
            waits: table.is_large(),
            gives_out: false,
            ended: false,
            len: 0,
            next: 0,
            waiting: [const { None }; RECORDS],
        }
    }

    /// Whether the next record is one of those that wait.
    #[inline(always)]
    pub fn gives_out(&self) -> bool {
        self.gives_out
    }

    /// Gives a record out that has waited. The chain is at it then.
    #[inline(always)]
    pub fn give_out(&mut self, at: &mut At) -> Option<Turn<Q, P>> {
        let Waiting { record, turn } = self.waiting[..self.len].get_mut(self.next)?.take()?;
        at.back_to(record);
        self.next += 1;
        if self.next == self.len && !self.ended {
            // The chain is at the last record that was put here, and goes on behind it.
            (self.gives_out, self.len, self.next) = (false, 0, 0);
        }
        Some(turn)
    }

    /// No more records come. Gives the first out of those that wait.
    #[inline(always)]
    pub fn end(&mut self, at: &mut At) -> Option<Turn<Q, P>> {
        (self.gives_out, self.ended) = (true, true);
        self.give_out(at)
    }
}

impl<K, V> Table<K, V> {
    /// About how large it is. The shards are of much the same size.
    #[inline]
    fn bytes(&self) -> usize {
        self.shards_in_use() * self.shards[0].entries.num_buckets() * size_of::<Entry<K, V>>()
    }

    /// Whether it pays to look ahead: its entries are not all in the caches that are near.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.bytes() > CACHED
    }
}

impl<K: StoredKey, V> Table<K, V> {
    /// The record that the chain is at has come to the table, with this key and the rest that is needed of it. Returns
    /// the record whose turn it is, if the chain is not to go on with the next one.
    #[inline(always)]
    pub fn arrive<Q: Key<Stored = K>, P>(
        &self,
        ahead: &mut Ahead<Q, P>,
        at: &mut At,
        key: Q,
        rest: P,
    ) -> Option<Turn<Q, P>> {
        let turn = (Spot::from(hash(&key)), key, rest);
        if !ahead.waits {
            return Some(turn);
        }
        if let Some(place) = ahead.waiting.get_mut(ahead.len) {
            *place = Some(Waiting { record: at.record(), turn });
            ahead.len += 1;
        }
        if ahead.len < RECORDS {
            return None;
        }
        self.look_ahead(&mut ahead.waiting);
        ahead.gives_out = true;
        ahead.give_out(at)
    }

    /// Lets the processor fetch the entries of the keys that wait, in two steps: while one key's place in the table is
    /// on its way from memory, it goes on to the next key's, and does not wait with an entry that it cannot find yet.
    #[inline(never)]
    fn look_ahead<Q: Key<Stored = K>, P>(&self, waiting: &mut [Option<Waiting<Q, P>>; RECORDS]) {
        for Waiting { turn: (spot, ..), .. } in waiting.iter_mut().flatten() {
            let entries = &self.shards[self.number(spot.hash)].entries;
            // The first one whose hash is similar, which is nearly always that of the key.
            spot.bucket = entries.find_bucket_index(spot.hash, |_| true).unwrap_or(usize::MAX);
        }
        let mut found = 0;
        for Waiting { turn: (spot, key, _), .. } in waiting.iter().flatten() {
            let entries = &self.shards[self.number(spot.hash)].entries;
            found += usize::from(entries.get_bucket(spot.bucket).is_some_and(|entry| key.is(&entry.key)));
        }
        // Nothing depends on it.
        std::hint::black_box(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goes through the records as generated code does: those that `passes` come to the table. Returns what `work` says.
    fn each<Q: Key<Stored = K>, K: StoredKey, V, R>(
        table: &mut Table<K, V>,
        keys: impl Iterator<Item = Q>,
        mut passes: impl FnMut(&Q) -> bool,
        mut work: impl FnMut(&mut Table<K, V>, &At, Spot, Q) -> R,
    ) -> Vec<R> {
        let (mut at, mut ahead, mut keys, mut results) = (At::start(0), Ahead::of(table), keys, Vec::new());
        while let Some((spot, key, ())) = 'turn: {
            if ahead.gives_out() {
                break 'turn ahead.give_out(&mut at);
            }
            for key in keys.by_ref() {
                at.next();
                if passes(&key)
                    && let Some(turn) = table.arrive(&mut ahead, &mut at, key, ())
                {
                    break 'turn Some(turn);
                }
            }
            ahead.end(&mut at)
        } {
            results.push(work(table, &at, spot, key));
        }
        results
    }

    fn large() -> Table<u64, u64> {
        let mut table = Table::new();
        let mut key = u64::MAX;
        while !table.is_large() {
            table.tally(key).unwrap();
            key -= 1;
        }
        table
    }

    #[test]
    fn keys_that_wait_together_are_counted_one_after_the_other() {
        for records in [0, 1, 31, 32, 33, 64, 100, 200_000u64] {
            let keys = || (0..records).map(|n| n * n % 70_001);
            for make in [Table::<u64, u64>::new, large] {
                let mut table = make();
                let expected: Vec<_> = keys().map(|key| table.tally(key).unwrap()).collect();
                let tally = |table: &mut Table<_, _>, _: &At, spot, key| table.tally_at(spot, key).unwrap();
                assert_eq!(each(&mut make(), keys(), |_| true, tally), expected);
            }
        }
    }

    #[test]
    fn each_record_keeps_its_number() {
        for mut table in [Table::<u64, u64>::new(), large()] {
            let found = each(&mut table, 1..=1000, |n| n % 3 != 0, |_, at, _, n| (at.record(), n));
            let expected: Vec<_> = (1..=1000).filter(|n| n % 3 != 0).map(|n| (n, n)).collect();
            assert_eq!(found, expected);
        }
    }

    /// The iterator of a source may begin anew when it is asked once more behind its end.
    #[test]
    fn nothing_is_asked_for_behind_the_end() {
        for mut table in [Table::<u64, u64>::new(), large()] {
            let mut left = 70..=70u64;
            let mut ended = false;
            let keys = std::iter::from_fn(|| {
                assert!(!std::mem::replace(&mut ended, left.is_empty()), "asked behind the end");
                left.next()
            });
            assert_eq!(each(&mut table, keys, |_| true, |_, _, _, n| n), [70]);
        }
    }
}
