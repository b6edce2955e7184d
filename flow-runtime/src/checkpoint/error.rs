//! Why a checkpoint could not be written, read or used.

use std::fmt;

use super::{CheckpointId, fingerprint::Vanished};
use crate::error::BoxError;

/// Why a checkpoint could not be written, read or used. Every message ends with what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The directory or the object store did not do what it was asked.
    #[error("cannot {action} `{path}`: {cause}; look at the permissions, the space and the connection there")]
    Io {
        /// What was tried: `read`, `write`, ...
        action: &'static str,
        /// The file or folder, within its store.
        path: String,
        /// What the store said.
        #[source]
        cause: BoxError,
    },
    /// A file is not what was once written.
    #[error("`{path}` {damage}; restore the file from a copy, or use an older checkpoint")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        damage: Damage,
    },
    /// A file was written by another version of this crate.
    #[error("`{path}` has format {found}, and this version reads format {supported}; {}", other_version(*.found, *.supported))]
    Format {
        /// The file.
        path: String,
        /// The format of the file.
        found: u32,
        /// The format that can be read.
        supported: u32,
    },
    /// The checkpoint of another job.
    #[error(
        "checkpoint {id} belongs to job `{found}`, and this is job `{expected}`; give each job a checkpoint directory of its own"
    )]
    OtherJob {
        /// The checkpoint.
        id: CheckpointId,
        /// The job that wrote it.
        found: String,
        /// The job that would read it.
        expected: String,
    },
    /// The checkpoint holds state of operators that the pipeline no longer has.
    #[error("checkpoint {id} holds state that this pipeline has no operator for: {}; keep an operator's state with `.uid(\"..\")`, or drop it with --allow-dropped-state", Vanished::list(.vanished))]
    Vanished {
        /// The checkpoint.
        id: CheckpointId,
        /// The operators.
        vanished: Vec<Vanished>,
    },
    /// An operator has the uid of one that was something else.
    #[error(
        "operator `{uid}` was `{was}` in checkpoint {id} and is `{is}` now, so its state does not fit; give the new operator another uid with `.uid(\"..\")`"
    )]
    KindChanged {
        /// The checkpoint.
        id: CheckpointId,
        /// The operator.
        uid: String,
        /// What it was.
        was: String,
        /// What it is.
        is: String,
    },
    /// The number of key groups is part of the state.
    #[error(
        "checkpoint {id} was written with max_parallelism = {was}, and this pipeline says {is}; set it back to {was}"
    )]
    MaxParallelism {
        /// The checkpoint.
        id: CheckpointId,
        /// As written.
        was: usize,
        /// As configured.
        is: usize,
    },
    /// The newest checkpoint cannot be used, and an older one was not allowed.
    #[error(
        "the newest checkpoint, {id}, cannot be used: {cause}. To go back to the one before it, and process what came since again, pass --allow-older-checkpoint"
    )]
    NewestUnusable {
        /// The checkpoint.
        id: CheckpointId,
        /// What is wrong with it.
        cause: String,
    },
    /// The checkpoint that was asked for by its number cannot be used.
    #[error("checkpoint {id} in `{location}` cannot be used: {cause}")]
    Named {
        /// The store.
        location: String,
        /// The checkpoint.
        id: CheckpointId,
        /// What is wrong with it.
        cause: String,
    },
    /// There are checkpoints, and not one of them can be used.
    #[error(
        "none of the {count} checkpoints in `{location}` can be used; the newest, {id}: {cause}. To begin without state, pass --fresh"
    )]
    AllUnusable {
        /// The store.
        location: String,
        /// How many there are.
        count: usize,
        /// The newest.
        id: CheckpointId,
        /// What is wrong with the newest.
        cause: String,
    },
    /// A checkpoint was asked for where there is none.
    #[error("there is no checkpoint in `{location}`; look at the path, or begin without state")]
    NoneFound {
        /// The store.
        location: String,
    },
    /// That one is not there.
    #[error("there is no checkpoint {id} in `{location}`; {}", choose_one_of(.available))]
    NotFound {
        /// The store.
        location: String,
        /// The one asked for.
        id: CheckpointId,
        /// Those that are there, newest first.
        available: Vec<CheckpointId>,
    },
    /// Another run of the job, or of another one, holds the directory.
    #[error(
        "process {process} runs with the checkpoints in `{location}`; stop it first, or give this job a checkpoint directory of its own"
    )]
    InUse {
        /// The store.
        location: String,
        /// The number of the process that holds it.
        process: String,
    },
    /// A directory that should have been empty.
    #[error("`{location}` already holds checkpoints; choose an empty directory")]
    NotEmpty {
        /// The store.
        location: String,
    },
    /// Another run has completed the checkpoint with this number.
    #[error(
        "checkpoint {id} in `{location}` was written by another run; stop the other one, or give each a checkpoint directory of its own"
    )]
    Taken {
        /// The store.
        location: String,
        /// The number.
        id: CheckpointId,
    },
    /// A checkpoint took too long or could not be written, and was one too many to fail.
    #[error("{}", too_many(*.id, *.failures, *.tolerable, .cause))]
    Failed {
        /// The checkpoint.
        id: CheckpointId,
        /// How many have failed since the last complete one.
        failures: u32,
        /// How many may.
        tolerable: u32,
        /// What went wrong with this one.
        cause: String,
    },
    /// The location cannot be understood.
    #[error("`{url}` is no place for checkpoints: {problem}")]
    Location {
        /// As given, without credentials.
        url: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A key or a value could not be encoded.
    #[error("the state cannot be encoded: {cause}; see whether its `Serialize` can fail")]
    Encode {
        /// What serde said.
        cause: String,
    },
    /// A key or a value could not be decoded.
    #[error(
        "the state does not fit its type: {cause}; give new fields `#[serde(default)]`, and changed ones a new name"
    )]
    Decode {
        /// What serde said.
        cause: String,
    },
    /// Any of these, in the state of one operator.
    #[error("operator `{uid}`: {cause}")]
    Operator {
        /// The operator.
        uid: String,
        /// What went wrong there.
        #[source]
        cause: Box<CheckpointError>,
    },
}

impl CheckpointError {
    pub(crate) fn io(action: &'static str, path: impl Into<String>, cause: impl Into<BoxError>) -> Self {
        CheckpointError::Io { action, path: path.into(), cause: cause.into() }
    }

    pub(crate) fn damaged(path: impl Into<String>, damage: Damage) -> Self {
        CheckpointError::Damaged { path: path.into(), damage }
    }

    /// Says in which operator's state it happened.
    #[must_use]
    pub fn of(self, uid: &str) -> Self {
        CheckpointError::Operator { uid: uid.to_owned(), cause: Box::new(self) }
    }

    /// Whether another attempt can help: what the store refused now it may do later; the rest stays as it is.
    pub(crate) fn restartable(&self) -> bool {
        match self {
            CheckpointError::Io { .. } | CheckpointError::Failed { .. } => true,
            CheckpointError::Operator { cause, .. } => cause.restartable(),
            _ => false,
        }
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// It is not there.
    Missing,
    /// It begins with other bytes than its kind does.
    Magic,
    /// It is not as long as it says.
    Length {
        /// The bytes that it should have.
        expected: u64,
        /// The bytes that it has.
        found: u64,
    },
    /// Its content does not match its checksum.
    Checksum,
    /// It is a sound file, but another than the manifest means.
    Replaced,
    /// Its checksum is right, and still it makes no sense.
    Content(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Missing => f.write_str("is missing"),
            Damage::Magic => f.write_str("is damaged: it does not begin as such a file does"),
            Damage::Length { expected, found } if found < expected => {
                write!(f, "is truncated: it has {found} of {expected} bytes")
            }
            Damage::Length { expected, found } => {
                write!(f, "is damaged: it has {found} bytes where {expected} were written")
            }
            Damage::Checksum => f.write_str("is damaged: its checksum does not match"),
            Damage::Replaced => f.write_str("is not the file that the manifest means"),
            Damage::Content(what) => write!(f, "is damaged: {what}"),
        }
    }
}

fn other_version(found: u32, supported: u32) -> &'static str {
    if found > supported {
        "run the job with the version that wrote it, or a newer one"
    } else {
        "run the job with the version that wrote it, or begin without state by --fresh"
    }
}

fn choose_one_of(ids: &[CheckpointId]) -> String {
    if ids.is_empty() {
        return "there is none at all: look at the path".to_owned();
    }
    let some: Vec<_> = ids.iter().take(5).map(ToString::to_string).collect();
    format!("choose one of {}{}", some.join(", "), if ids.len() > 5 { ", .." } else { "" })
}

fn too_many(id: CheckpointId, failures: u32, tolerable: u32, cause: &str) -> String {
    let remedy = "once the cause is mended the job goes on from its last complete checkpoint";
    if failures <= tolerable {
        return format!("checkpoint {id}, the last of this run, failed: {cause}; {remedy}");
    }
    let raise = "to bear more failures, raise --checkpoint-tolerable-failures";
    match tolerable {
        0 => format!("checkpoint {id} failed: {cause}; {remedy}; {raise}"),
        _ => format!(
            "checkpoint {id} failed, number {failures} in a row where {tolerable} may: {cause}; {remedy}; {raise}"
        ),
    }
}
