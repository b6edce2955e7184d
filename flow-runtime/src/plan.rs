//! The plan of a pipeline: what the macro knows about it at compile time.

use std::time::Duration;

use crate::{
    checkpoint::{Compression, OperatorEntry},
    worker::{Restart, Retention},
};

/// What may happen to records when something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Every record counts once in state and in what sinks make visible.
    ExactlyOnce,
    /// No record is lost; after a failure some may count twice.
    AtLeastOnce,
    /// No record counts twice; after a failure some may be lost.
    AtMostOnce,
}

/// Whether results are updated as records come, or given once at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// An aggregate emits an update for each record.
    Streaming,
    /// An aggregate emits one final record per key, at the end of the input.
    Batch,
}

/// How records get from one operator to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ship {
    /// To the subtask of the same index; in the same loop where `chained`.
    Forward,
    /// To the owner of the key's group.
    KeyGroup,
    /// To each subtask in turn.
    Rebalance,
    /// To a share of the subtasks in turn.
    Rescale,
    /// To all subtasks.
    Broadcast,
    /// To the first subtask.
    Global,
    /// As a closure says.
    Custom,
}

/// A pipeline at compile time.
#[derive(Debug)]
pub struct Plan {
    /// The job's name.
    pub name: &'static str,
    /// See [`Guarantee`].
    pub guarantee: Guarantee,
    /// See [`Mode`].
    pub mode: Mode,
    /// What the pipeline says of its checkpoints.
    pub checkpoint: CheckpointPlan,
    /// What to do when an attempt fails, if the pipeline says so.
    pub restart: Option<Restart>,
    /// The parallelism of operators that set none, if the pipeline sets it.
    pub parallelism: Option<usize>,
    /// The number of key groups, if the pipeline sets it.
    pub max_parallelism: Option<usize>,
    /// The operators, each after those it reads from.
    pub operators: &'static [OperatorPlan],
    /// Who reads from whom.
    pub edges: &'static [EdgePlan],
}

/// What a pipeline says of its checkpoints; see [`Config`](crate::worker::Config) for what each is, and for what holds
/// where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointPlan {
    /// From one to the next.
    pub interval: Option<Duration>,
    /// When one has taken too long.
    pub timeout: Option<Duration>,
    /// From the end of one to the next.
    pub min_pause: Option<Duration>,
    /// How many at a time.
    pub max_concurrent: Option<usize>,
    /// How many may fail in a row.
    pub tolerable_failures: Option<u32>,
    /// How many to keep.
    pub retain: Option<usize>,
    /// How state is written.
    pub compression: Option<Compression>,
    /// What becomes of them when the job is stopped.
    pub on_cancel: Option<Retention>,
    /// What becomes of them when the job has read all of its input.
    pub on_success: Option<Retention>,
}

/// An operator at compile time.
#[derive(Debug)]
pub struct OperatorPlan {
    /// What names it across versions of the pipeline.
    pub uid: &'static str,
    /// What names it for people.
    pub name: &'static str,
    /// What it does: `map`, `sum`, `sink`.
    pub kind: &'static str,
    /// The number of subtasks, where the pipeline sets it.
    pub parallelism: Option<usize>,
    /// Whether it keeps keyed state.
    pub stateful: bool,
    /// Whether it keeps state that belongs to no key.
    pub operator_state: bool,
    /// The chain it is part of, when the job runs at a parallelism above 1.
    pub chain: usize,
    /// The plan of a helper function that stands here, from stream to stream.
    pub part: Option<&'static Plan>,
}

/// An edge at compile time.
#[derive(Debug)]
pub struct EdgePlan {
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// How records get there.
    pub ship: Ship,
}

impl Plan {
    /// The operators of which a checkpoint holds something, with those of helper functions under their uids.
    pub(crate) fn remembered(&self) -> Vec<OperatorEntry> {
        let mut entries = Vec::new();
        self.collect_remembered("", &mut entries);
        entries
    }

    /// How many workers it takes: as many as the widest operator has subtasks.
    pub(crate) fn workers(&self, parallelism: usize) -> usize {
        let parts = self.operators.iter().filter_map(|operator| operator.part);
        let explicit = self.operators.iter().filter_map(|operator| operator.parallelism);
        explicit.chain(parts.map(|part| part.workers(parallelism))).chain([parallelism]).max().unwrap_or(1)
    }

    fn collect_remembered(&self, prefix: &str, entries: &mut Vec<OperatorEntry>) {
        for operator in self.operators {
            let uid = format!("{prefix}{}", operator.uid);
            if let Some(part) = operator.part {
                part.collect_remembered(&format!("{uid}/"), entries);
            } else if operator.remembers() {
                // How many subtasks there are is nobody's fingerprint.
                entries.push(OperatorEntry { uid, kind: operator.kind.to_owned(), parallelism: 0 });
            }
        }
    }
}

impl CheckpointPlan {
    /// Nothing said.
    #[must_use]
    pub const fn new() -> Self {
        CheckpointPlan {
            interval: None,
            timeout: None,
            min_pause: None,
            max_concurrent: None,
            tolerable_failures: None,
            retain: None,
            compression: None,
            on_cancel: None,
            on_success: None,
        }
    }

    /// With an interval.
    #[must_use]
    pub const fn interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// With a timeout.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// With a pause in between.
    #[must_use]
    pub const fn min_pause(mut self, pause: Duration) -> Self {
        self.min_pause = Some(pause);
        self
    }

    /// With so many at a time.
    #[must_use]
    pub const fn max_concurrent(mut self, max: usize) -> Self {
        self.max_concurrent = Some(max);
        self
    }

    /// With so many that may fail in a row.
    #[must_use]
    pub const fn tolerable_failures(mut self, failures: u32) -> Self {
        self.tolerable_failures = Some(failures);
        self
    }

    /// With so many kept.
    #[must_use]
    pub const fn retain(mut self, retain: usize) -> Self {
        self.retain = Some(retain);
        self
    }

    /// With compression of state, or expressly without.
    #[must_use]
    pub const fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// With what becomes of them when the job is stopped.
    #[must_use]
    pub const fn on_cancel(mut self, retention: Retention) -> Self {
        self.on_cancel = Some(retention);
        self
    }

    /// With what becomes of them when the job has read all of its input.
    #[must_use]
    pub const fn on_success(mut self, retention: Retention) -> Self {
        self.on_success = Some(retention);
        self
    }
}

impl EdgePlan {
    /// An edge.
    #[must_use]
    pub const fn new(from: usize, to: usize, ship: Ship) -> Self {
        EdgePlan { from, to, ship }
    }
}

impl OperatorPlan {
    /// An operator without anything special. Generated code says the rest.
    #[must_use]
    pub const fn new(uid: &'static str, kind: &'static str, chain: usize) -> Self {
        OperatorPlan {
            uid,
            name: uid,
            kind,
            parallelism: None,
            stateful: false,
            operator_state: false,
            chain,
            part: None,
        }
    }

    /// With a name for people.
    #[must_use]
    pub const fn name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// With a parallelism of its own.
    #[must_use]
    pub const fn parallelism(mut self, parallelism: usize) -> Self {
        self.parallelism = Some(parallelism);
        self
    }

    /// With keyed state.
    #[must_use]
    pub const fn stateful(mut self) -> Self {
        self.stateful = true;
        self
    }

    /// With state that belongs to no key.
    #[must_use]
    pub const fn operator_state(mut self) -> Self {
        self.operator_state = true;
        self
    }

    /// A helper function.
    #[must_use]
    pub const fn part(mut self, plan: &'static Plan) -> Self {
        self.part = Some(plan);
        self
    }

    /// Whether a checkpoint holds something of it.
    pub(crate) fn remembers(&self) -> bool {
        self.stateful || self.operator_state || matches!(self.kind, "source" | "sink")
    }
}
