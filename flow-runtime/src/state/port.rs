//! What a checkpoint needs of a table, whatever its types.

use std::time::Instant;

use bytes::Bytes;

use super::{
    KeyGroup, KeyGroups, Keyed, StateValue, StoredKey,
    chunks::{Chunk, Chunks},
    hash,
    track::{Closed, Left},
};
use crate::checkpoint::{
    CheckpointError, Merge, decode_entries, decode_groups, encode_entry, encode_groups, encode_removal,
    merge_segments,
};

/// The state at a barrier, or what of it has changed since the barrier before.
pub(crate) struct Snapshot {
    /// Whether it is all of the state.
    pub(crate) whole: bool,
    /// Encodes it. Waits for what the worker collects, so it runs on a thread that may wait.
    pub(crate) encode: Box<dyn FnOnce() -> Result<Bytes, CheckpointError> + Send>,
}

/// What a checkpoint needs of a [`Keyed`].
pub(crate) trait StatePort {
    /// Adds a segment of a snapshot: what of it belongs to this subtask. Segments come in their order.
    fn restore(&self, segment: &Bytes, groups: KeyGroups, subtask: usize) -> Result<(), CheckpointError>;

    /// The next snapshot holds all of the state, or only what changes from here on.
    fn set_whole(&self, whole: bool);

    /// A barrier. Takes a moment, however large the state is; `None` when nothing has changed since the last one.
    fn close(&self, groups: KeyGroups) -> Option<Snapshot>;

    /// Collects for the last snapshot, until a time or until there is enough to be encoded.
    fn collect(&self, until: Instant) -> Left;

    /// What merges segments of this state.
    fn merge(&self) -> Merge;
}

impl<K: StoredKey, V: StateValue> StatePort for Keyed<K, V> {
    fn restore(&self, segment: &Bytes, groups: KeyGroups, subtask: usize) -> Result<(), CheckpointError> {
        let mut table = self.borrow_mut();
        for group in decode_groups(segment) {
            let (group, bytes) = group?;
            if groups.owner(KeyGroup(group)) == subtask {
                for entry in decode_entries::<K, V>(&bytes) {
                    let (key, value) = entry?;
                    table.restore(key, value);
                }
            }
        }
        Ok(())
    }

    fn set_whole(&self, whole: bool) {
        self.borrow_mut().set_whole(whole);
    }

    fn close(&self, groups: KeyGroups) -> Option<Snapshot> {
        let Closed { whole, chunks } = self.borrow_mut().close()?;
        Some(Snapshot { whole, encode: Box::new(move || encode(whole, &chunks, groups)) })
    }

    fn collect(&self, until: Instant) -> Left {
        self.borrow_mut().collect(Some(until))
    }

    fn merge(&self) -> Merge {
        merge_segments::<K>
    }
}

fn encode<K: StoredKey, V: StateValue>(
    whole: bool,
    chunks: &Chunks<K, V>,
    groups: KeyGroups,
) -> Result<Bytes, CheckpointError> {
    let mut encoded = vec![Vec::new(); groups.max_parallelism as usize];
    let group = |key: &K| groups.group(hash(key)).0 as usize;
    loop {
        match chunks.recv() {
            Some(Chunk::Removed(_)) if whole => {}
            Some(Chunk::Removed(keys)) => {
                for key in &keys {
                    encode_removal(&mut encoded[group(key)], key)?;
                }
            }
            Some(Chunk::Changed(entries)) => {
                for (key, value) in &entries {
                    encode_entry(&mut encoded[group(key)], key, value)?;
                }
            }
            Some(Chunk::End) => {
                let groups = (0..).zip(encoded).filter(|(_, entries)| !entries.is_empty());
                return Ok(encode_groups(groups));
            }
            None => {
                return Err(CheckpointError::Encode { cause: "the job ended meanwhile".to_owned() });
            }
        }
    }
}
