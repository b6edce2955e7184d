//! Checkpoints: what they hold, where they are kept, and when they are complete.
//!
//! # The directory
//!
//! ```text
//! <dir>/chk-0000000012/words.sum-0.5b1f0c9ad2e7443a-3.part     one subtask's state, or one pending transaction
//! <dir>/chk-0000000012/manifest                                written last
//! ```
//!
//! **A checkpoint exists iff its manifest does.** Parts are written first, in any order; the manifest appears at
//! once and complete, and only if no other run has written it before. On a local directory files and folders are
//! synced to disk before a write counts as done; its file system must have hard links, as all common ones have. What is unreadable is named, never skipped in silence.
//!
//! A manifest may name parts that lie in the folder of an earlier checkpoint, as long as the newest manifest
//! before it names them too: a transaction that is still to be committed is carried along like this without
//! being written again. [`Store::retain`] therefore deletes a part only when no manifest that stays names it, and
//! touches nothing that is newer than the newest manifest. Files that are not ours are left alone.
//!
//! ## A part, format 1
//!
//! | bytes | meaning |
//! |-------|---------|
//! | 8     | `FLOWPART` |
//! | 4     | format, little endian |
//! | 8     | length of the payload, little endian |
//! | 4     | CRC-32 (IEEE) of the payload, little endian |
//! | ...   | the payload, to the end of the file |
//!
//! The payload of a state part is a list of key groups: the number of groups, then for each its number and the
//! length of its bytes (4, 4 and 8 bytes, little endian), then those bytes. Within a group keyed entries follow
//! each other, each a key and a value in MessagePack with named fields.
//!
//! ## A manifest, format 1
//!
//! One line `flow-checkpoint 1 crc32=9ae0daaf bytes=1532`, then that many bytes of JSON: [`Manifest`] field by
//! field, bytes as hexadecimal text. `tail -n +2 manifest` shows it.
//!
//! A format that is newer than this crate is refused; older ones stay readable.

mod decide;
mod envelope;
mod error;
mod fingerprint;
mod held;
mod id;
mod location;
mod log;
mod manifest;
mod merge;
mod parts;
mod publish;
mod restore;
mod retain;
mod snapshot;
mod store;

pub use decide::{Coordinator, Decision, Timing};
pub use error::{CheckpointError, Damage};
pub use fingerprint::Vanished;
pub use id::CheckpointId;
pub(crate) use log::{NewSegment, StateLog};
pub use manifest::{Manifest, OperatorEntry, PartFile, SinkPart, SourcePart, SplitState, StatePart};
pub(crate) use merge::{Merge, merge_segments};
pub use publish::Found;
pub use restore::{Choice, Restore, RestoreRequest, Restored, Resumed, Wanted, choose};
pub use snapshot::{
    Entries, Groups, decode_entries, decode_groups, encode_entry, encode_groups, encode_removal, verify_entries,
};
pub use store::Store;

#[cfg(test)]
mod tests;
