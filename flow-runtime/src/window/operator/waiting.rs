//! Records that wait for each other before they go to the table.
//!
//! Where a table is larger than the processor's caches, the entry of each key has to be fetched from memory first. A
//! processor fetches a dozen of them at a time if it comes to know of them early enough. So records are put aside, the
//! entries of all of them are fetched at once, and then each goes into its windows as it would have before: the watermark
//! and the clock stand still meanwhile, since they go on between batches, and no record waits for longer than its batch.

use super::WindowsMut;
use crate::{
    chain::Failed,
    join::keys::Owned,
    state::{StoredKey, hash},
    time::Timestamp,
    window::{Definition, state::List},
};

/// How many records wait: about twice as many as are fetched at a time.
const RECORDS: usize = 32;

/// A record that waits.
pub(super) struct Waiting<K, In> {
    hash: u64,
    key: K,
    timestamp: Timestamp,
    record: In,
    /// Its number in the batch.
    number: u64,
}

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    /// Puts a record aside. When enough wait, all go into their windows.
    #[inline(never)]
    pub(in crate::window) fn wait(
        &mut self,
        number: u64,
        key: K,
        timestamp: Timestamp,
        record: In,
    ) -> Result<(), Failed> {
        let waiting = &mut self.core.waiting;
        waiting.push(Waiting { hash: hash(&key), key, timestamp, record, number });
        if waiting.len() < RECORDS { Ok(()) } else { self.settle_all() }
    }

    /// The batch ends: nobody waits any longer.
    ///
    /// # Errors
    /// Those of the aggregate, with the number of the record.
    #[inline]
    pub fn settle(&mut self) -> Result<(), Failed> {
        if self.core.waiting.is_empty() { Ok(()) } else { self.settle_all() }
    }

    #[inline(never)]
    fn settle_all(&mut self) -> Result<(), Failed> {
        let mut waiting = std::mem::take(&mut self.core.waiting);
        self.table.fetch(waiting.iter().map(|record| record.hash), |state| state.open.len());
        for Waiting { hash, key, timestamp, record, number } in waiting.drain(..) {
            self.add_at(hash, &Owned(&key), timestamp, record)
                .map_err(|cause| Failed { record: number, cause })?;
        }
        // The memory serves again.
        self.core.waiting = waiting;
        Ok(())
    }
}
