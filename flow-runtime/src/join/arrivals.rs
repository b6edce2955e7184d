//! Records on their way to a table, noted until the loop behind the inputs takes them.
//!
//! Each needs an entry of the table, which is to be fetched from memory if there are many. A processor fetches a dozen of
//! them at a time if it comes to know of them early enough; here it does, since the next keys are known.

use std::{collections::VecDeque, hint::black_box};

use super::{Side, keys::Owned};
use crate::{
    state::{StoredKey, Table, hash},
    time::Timestamp,
};

/// What has arrived, in its order.
pub(super) struct Arrivals<K, L, R> {
    waiting: VecDeque<Arrival<K, L, R>>,
    /// For how many of these the entry has been fetched.
    fetched: usize,
}

/// A record of one side.
pub(super) struct Arrival<K, L, R> {
    /// Of the key.
    pub(super) hash: u64,
    pub(super) key: K,
    /// When it is, or when its window ends.
    pub(super) time: Timestamp,
    pub(super) record: Side<L, R>,
}

/// So many entries are fetched at a time.
pub(super) const FETCHED: usize = 16;

impl<K: StoredKey, L, R> Arrivals<K, L, R> {
    pub(super) fn new() -> Self {
        Arrivals { waiting: VecDeque::new(), fetched: 0 }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, key: K, time: Timestamp, record: Side<L, R>) {
        self.waiting.push_back(Arrival { hash: hash(&key), key, time, record });
    }

    /// Takes out the next one, which is about to go to its entry of the table. `touch` looks at the places that a record
    /// needs beside the entry, and returns something that depends on what is there.
    #[inline(always)]
    pub(super) fn next<V>(
        &mut self,
        table: &Table<K, V>,
        touch: impl Fn(&V) -> i64,
    ) -> Option<Arrival<K, L, R>> {
        if self.fetched == 0 {
            self.fetch(table, touch);
        }
        let next = self.waiting.pop_front()?;
        self.fetched -= 1;
        Some(next)
    }

    #[inline(never)]
    fn fetch<V>(&mut self, table: &Table<K, V>, touch: impl Fn(&V) -> i64) {
        self.fetched = self.waiting.len().min(FETCHED);
        if table.is_large() {
            let next = self.waiting.range(..self.fetched);
            let entries = next.filter_map(|next| table.get(next.hash, &Owned(&next.key)));
            // Nothing depends on what is found there, so the processor need not wait for it.
            black_box(entries.fold(0, |all, value| all ^ touch(value)));
        }
    }
}
