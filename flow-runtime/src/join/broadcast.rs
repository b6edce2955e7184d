//! Joins with a small stream: its newest record of each key is kept in every subtask, and each record of the other
//! stream looks there, without an exchange of its own.
//!
//! All subtasks keep the same, so a checkpoint holds it once, and it is there at any parallelism afterwards. Who sends the
//! small stream in several subtasks should see to it that records of one key come from one of them: in which order records
//! of different senders arrive is not the same everywhere.

use std::fmt;

use hashbrown::HashTable;

use super::SameKey;
use crate::state::{Key, OperatorState, OperatorStateMut, StateItems, StateValue, StoredKey, hash};

/// What is kept: the newest record of each key.
pub struct Kept<K, R>(HashTable<(K, R)>);

impl<K, R> Default for Kept<K, R> {
    fn default() -> Self {
        Kept(HashTable::new())
    }
}

impl<K: StoredKey, R> Kept<K, R> {
    fn keep(&mut self, key: K, record: R) {
        let hash = hash(&key);
        match self.0.find_mut(hash, |kept| kept.0 == key) {
            Some(kept) => kept.1 = record,
            None => {
                self.0.insert_unique(hash, (key, record), |kept| crate::state::hash(&kept.0));
            }
        }
    }

    #[inline(always)]
    fn of<Q: Key<Stored: SameKey<K>>>(&self, key: &Q) -> Option<&R> {
        let kept = self.0.find(hash(key), |kept| key.is(Q::Stored::same_ref(&kept.0)))?;
        Some(&kept.1)
    }
}

impl<K: StoredKey, R: StateValue> StateItems for Kept<K, R> {
    type Item = (K, R);

    fn items(&self) -> Vec<(K, R)> {
        self.0.iter().cloned().collect()
    }

    fn add(&mut self, items: Vec<(K, R)>) {
        items.into_iter().for_each(|(key, record)| self.keep(key, record));
    }
}

/// The handle of such a join in one subtask, which the loops of both streams borrow for each batch.
#[derive(Debug)]
pub struct BroadcastJoin<K, R>(OperatorState<Kept<K, R>>);

impl<K, R> BroadcastJoin<K, R> {
    pub(crate) fn new(kept: OperatorState<Kept<K, R>>) -> Self {
        BroadcastJoin(kept)
    }

    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> BroadcastJoinMut<'_, K, R> {
        BroadcastJoinMut(self.0.borrow_mut())
    }
}

impl<K, R> Clone for BroadcastJoin<K, R> {
    fn clone(&self) -> Self {
        BroadcastJoin(self.0.clone())
    }
}

/// [`BroadcastJoin`], borrowed for the time of one batch.
#[derive(Debug)]
pub struct BroadcastJoinMut<'j, K, R>(OperatorStateMut<'j, Kept<K, R>>);

impl<K: StoredKey, R> BroadcastJoinMut<'_, K, R> {
    /// Keeps a record of the small stream instead of the one before.
    #[inline]
    pub fn keep(&mut self, key: K, record: R) {
        self.0.keep(key, record);
    }

    /// What is kept for a key.
    #[inline(always)]
    #[must_use]
    pub fn kept_for<Q: Key<Stored: SameKey<K>>>(&self, key: &Q) -> Option<&R> {
        self.0.of(key)
    }
}

impl<K, R> fmt::Debug for Kept<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kept").field(&self.0.len()).finish()
    }
}
