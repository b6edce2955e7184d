//! Checkpoints: what they hold, where they are kept, and when they are complete.
//!
//! # The directory
//!
//! ```text
//! <dir>/chk-0000000012/words.sum-3-state.5b1f0c9ad2e7443a-3.part      all of one subtask's state
//! <dir>/chk-0000000013/words.sum-3-changes.5b1f0c9ad2e7443a-7.part    what has changed of it since
//! <dir>/chk-0000000013/manifest                                       written last
//! <dir>/lock                                                          held by the run that writes here
//! ```
//!
//! **A checkpoint exists iff its manifest does.** Parts are written first, in any order; the manifest appears at
//! once and complete, and only if no other run has written it before. On a local directory files and folders are
//! synced to disk before a write counts as done; its file system must have hard links, as all common ones have. What is unreadable is named, never skipped in silence.
//!
//! A manifest may name parts that lie in the folder of an earlier checkpoint: state that has not changed since, and a
//! transaction that is still to be committed, are not written again. [`Store::retain`] therefore deletes a part only
//! when no manifest that stays names it and none that is in the making will, and touches nothing that is newer than the
//! newest manifest. Files that are not ours are left alone.
//!
//! A checkpoint that took too long, or one of whose files could not be written, has failed: it gets no manifest, and
//! what was written of it goes once a later one is complete. Where the writing of the manifest itself failed, it may be
//! there all the same; such a checkpoint is whole, and as good to resume from as any.
//!
//! The bytes are described in `docs/checkpoint-format.md`. This crate reads the format that it writes, and refuses
//! every other one by its number.

mod compression;
mod decide;
mod envelope;
mod error;
mod fingerprint;
mod held;
mod id;
mod location;
mod lock;
mod log;
mod manifest;
mod merge;
mod parts;
mod publish;
mod restore;
mod retain;
mod snapshot;
mod store;

pub use compression::Compression;
pub use decide::{Coordinator, Decision, Timing};
pub use error::{CheckpointError, Damage};
pub use fingerprint::Vanished;
pub use id::CheckpointId;
pub use lock::Lock;
pub(crate) use log::{NewSegment, StateLog};
pub use manifest::{
    Manifest, OperatorEntry, OperatorStatePart, PartFile, SinkPart, SourcePart, SplitState, StatePart,
    WatermarkPart,
};
pub(crate) use merge::{Merge, merge_segments};
pub use publish::Found;
pub use restore::{Choice, Restore, RestoreRequest, Restored, Resumed, Wanted, choose};
pub use snapshot::{
    Entries, Groups, decode_entries, decode_groups, encode_entry, encode_groups, encode_removal,
    verify_entries,
};
pub use store::Store;

#[cfg(test)]
mod tests;
