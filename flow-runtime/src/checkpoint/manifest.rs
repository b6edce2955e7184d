//! The manifest: everything that a checkpoint is made of.

use serde::{Deserialize, Serialize};

use super::CheckpointId;
use crate::time::Watermark;

/// What a checkpoint is made of. Written last, and what makes it exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of this file; see the [module](super).
    pub format: u32,
    /// The version of the crate that wrote it.
    pub flow_version: String,
    /// The job's name.
    pub job: String,
    /// The number of the checkpoint.
    pub id: CheckpointId,
    /// Whether the job had reached the end of its input, so that there is nothing to go on with.
    pub finished: bool,
    /// The number of key groups.
    pub max_parallelism: usize,
    /// The operators that have something to remember; their uids and kinds are the pipeline's fingerprint.
    pub operators: Vec<OperatorEntry>,
    /// The splits of the sources.
    pub sources: Vec<SourcePart>,
    /// The state of the operators.
    pub states: Vec<StatePart>,
    /// The state of operators that belongs to no key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operator_states: Vec<OperatorStatePart>,
    /// The transactions that are to be committed when the checkpoint is complete.
    pub sinks: Vec<SinkPart>,
    /// How far event time had come, in pipelines that have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watermarks: Vec<WatermarkPart>,
    /// When it was written, in milliseconds since 1970 UTC.
    pub created: u64,
}

/// An operator that has something to remember.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEntry {
    /// Its uid, which connects it with its state across versions of the pipeline.
    pub uid: String,
    /// What it is: `source`, `sum`, `sink`.
    pub kind: String,
    /// How many subtasks it had.
    pub parallelism: usize,
}

/// What one subtask of a source has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePart {
    /// The source.
    pub uid: String,
    /// The subtask.
    pub subtask: usize,
    /// Its splits, each with its position.
    pub splits: Vec<SplitState>,
}

/// A split at a position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitState {
    /// What names the split.
    pub id: String,
    /// The position, for people.
    pub position: String,
    /// The split as its source encodes it.
    #[serde(with = "hex")]
    pub data: Vec<u8>,
}

/// The state of one subtask of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatePart {
    /// The operator.
    pub uid: String,
    /// The subtask.
    pub subtask: usize,
    /// Where the state is: all of it as it once was, and then what has changed since, the latest last.
    pub files: Vec<PartFile>,
}

/// What one subtask of an operator holds that belongs to no key: a list of items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorStatePart {
    /// The operator.
    pub uid: String,
    /// Which of its lists it is.
    pub name: String,
    /// The subtask.
    pub subtask: usize,
    /// How many items there are; a subtask without any has no part.
    pub items: usize,
    /// Where they are.
    pub file: PartFile,
}

/// A pre-committed transaction of one subtask of a sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkPart {
    /// The sink.
    pub uid: String,
    /// The subtask.
    pub subtask: usize,
    /// The checkpoint at whose barrier it was pre-committed; this one, or an earlier one whose commit is not known
    /// to have succeeded.
    pub checkpoint: CheckpointId,
    /// Where the handle is.
    pub file: PartFile,
}

/// How far event time had come in one subtask of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatermarkPart {
    /// The operator: `.watermarks(..)`, or a window.
    pub uid: String,
    /// The subtask.
    pub subtask: usize,
    /// The watermark; none if nothing was known yet.
    pub watermark: Option<Watermark>,
}

/// A file that a manifest names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartFile {
    /// Where it lies, relative to the store.
    pub path: String,
    /// The length of its payload, as it lies there: of a compressed one, what is left of it.
    pub bytes: u64,
    /// The checksum of its payload.
    pub crc: u32,
}

impl Manifest {
    /// The format that this version writes.
    pub const FORMAT: u32 = 2;

    /// An empty manifest, created now.
    #[must_use]
    pub fn new(job: impl Into<String>, id: CheckpointId, max_parallelism: usize) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Manifest {
            format: Self::FORMAT,
            flow_version: env!("CARGO_PKG_VERSION").to_owned(),
            job: job.into(),
            id,
            finished: false,
            max_parallelism,
            operators: Vec::new(),
            sources: Vec::new(),
            states: Vec::new(),
            operator_states: Vec::new(),
            sinks: Vec::new(),
            watermarks: Vec::new(),
            created: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// The operator of this uid.
    #[must_use]
    pub fn operator(&self, uid: &str) -> Option<&OperatorEntry> {
        self.operators.iter().find(|o| o.uid == uid)
    }

    /// A number for the operators that have something to remember: as long as it is the same, a program can take up
    /// what another left.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut operators: Vec<_> = self.operators.iter().map(|o| [&o.uid, &o.kind]).collect();
        operators.sort_unstable();
        let bytes = operators.into_iter().flatten().flat_map(|text| text.bytes().chain([0xff]));
        // FNV-1a (draft-eastlake-fnv).
        bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// This checkpoint again, under the next number and without some of its transactions, which nobody will commit
    /// then.
    pub(crate) fn without(&self, dropped: impl Fn(&SinkPart) -> bool) -> Self {
        let mut next = Manifest::new(self.job.clone(), self.id.next(), self.max_parallelism);
        next.finished = self.finished;
        next.operators = self.operators.clone();
        next.sources = self.sources.clone();
        next.states = self.states.clone();
        next.operator_states = self.operator_states.clone();
        next.watermarks = self.watermarks.clone();
        next.sinks = self.sinks.iter().filter(|part| !dropped(part)).cloned().collect();
        next
    }

    /// The splits of a source, of all its subtasks.
    pub fn splits<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a SplitState> {
        self.sources.iter().filter(move |s| s.uid == uid).flat_map(|s| &s.splits)
    }

    /// The state parts of an operator.
    pub fn states<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a StatePart> {
        self.states.iter().filter(move |s| s.uid == uid)
    }

    /// The parts of the state of an operator that belongs to no key.
    pub fn operator_states<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a OperatorStatePart> {
        self.operator_states.iter().filter(move |s| s.uid == uid)
    }

    /// The pending transactions of a sink.
    pub fn sinks<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a SinkPart> {
        self.sinks.iter().filter(move |s| s.uid == uid)
    }

    /// How far event time had come in all subtasks of an operator: what it can go on from, whatever its parallelism.
    #[must_use]
    pub fn watermark(&self, uid: &str) -> Option<Watermark> {
        self.watermarks.iter().filter(|w| w.uid == uid).map(|w| w.watermark).min().flatten()
    }

    /// Every file that this manifest names.
    pub fn files(&self) -> impl Iterator<Item = &PartFile> {
        let lists = self.operator_states.iter().map(|s| &s.file);
        self.states.iter().flat_map(|s| &s.files).chain(lists).chain(self.sinks.iter().map(|s| &s.file))
    }

    /// The bytes that a restore would read, besides the manifest.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files().map(|f| f.bytes).sum()
    }

    /// Whether anything would be lost without the operator of this uid.
    pub(crate) fn remembers(&self, uid: &str) -> bool {
        self.splits(uid).next().is_some()
            || self.states(uid).next().is_some()
            || self.operator_states(uid).next().is_some()
            || self.sinks(uid).next().is_some()
    }
}

/// Bytes as hexadecimal text, so that the manifest stays readable.
mod hex {
    use std::fmt::Write;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits: Option<Vec<u8>> =
            text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 => Ok(digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect()),
            _ => Err(D::Error::custom("not hexadecimal")),
        }
    }
}
