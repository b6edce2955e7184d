//! What may go wrong.

use crate::{random::Random, target::Kind};

#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The process dies in a certain place.
    Die { point: &'static str, nth: u64 },
    /// What the job does in a certain place fails some times.
    Fail { point: &'static str, nth: u64, times: u64 },
    /// kill -9, at any moment.
    Kill,
    /// A file of the newest checkpoint is cut off.
    Truncate,
    /// A bit of a file of the newest checkpoint is another one.
    FlipBit,
    /// The job is started a second time while it runs.
    SecondCopy,
    /// The server is killed and started again.
    KillServer,
    /// The checkpoints' disk is full for a while.
    FullDisk,
    /// The checkpoints' directory cannot be written for a while.
    ReadOnly,
    /// The clock of the machine jumps.
    ClockJump { seconds: i64 },
}

impl Fault {
    pub(crate) fn by_chance(kind: Kind, random: &mut Random) -> Self {
        let points: Vec<&'static str> =
            flow::testing::failpoints::names().iter().copied().filter(|name| kind.passes(name)).collect();
        match random.below(100) {
            0..45 => {
                let point = random.of(&points);
                let nth = if is_recovery(point) { 1 } else { 1 + random.below(8) };
                Fault::Die { point, nth }
            }
            45..53 => Fault::Fail {
                point: random.of(&["store.part", "store.manifest"]),
                nth: 1 + random.below(20),
                times: 1 + random.below(4),
            },
            53..73 => Fault::Kill,
            73..77 => Fault::Truncate,
            77..81 => Fault::FlipBit,
            81..86 => Fault::SecondCopy,
            86..90 if kind.server().is_some() => Fault::KillServer,
            90..93 => Fault::FullDisk,
            93..97 => Fault::ReadOnly,
            97.. => Fault::ClockJump { seconds: [-86_400, -60, 3600, 40_000_000][random.below(4) as usize] },
            _ => Fault::Kill,
        }
    }

    /// In the table.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Fault::Die { point, .. } => match point.split_once('.').map_or(*point, |(group, _)| group) {
                "snapshot" => "died in a snapshot",
                "store" => "died writing a checkpoint's file",
                "manifest" => "died after the manifest",
                "sink" => "died around pre-commit and commit",
                "retention" => "died deleting old checkpoints",
                "recovery" => "died in recovery",
                _ => "died inside the sink",
            },
            Fault::Fail { .. } => "checkpoint's files could not be written",
            Fault::Kill => "kill -9 at any moment",
            Fault::Truncate => "checkpoint's file truncated",
            Fault::FlipBit => "checkpoint's bit flipped",
            Fault::SecondCopy => "second copy of the job",
            Fault::KillServer => "server killed",
            Fault::FullDisk => "disk full",
            Fault::ReadOnly => "directory read-only",
            Fault::ClockJump { .. } => "clock jumped",
        }
    }

    /// What the job's environment says of it.
    pub(crate) fn failpoint(&self) -> Option<String> {
        match self {
            Fault::Die { point, nth } => Some(format!("{point}=die@{nth}")),
            Fault::Fail { point, nth, times } => Some(format!("{point}=fail@{nth}x{times}")),
            _ => None,
        }
    }
}

/// Whether a job comes by once per start.
pub(crate) fn is_recovery(point: &str) -> bool {
    point.starts_with("recovery.") || matches!(point, "prepared.taken_over" | "prepared.settled")
}
