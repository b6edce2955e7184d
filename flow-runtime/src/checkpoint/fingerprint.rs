//! Whether a checkpoint fits a pipeline.

use super::{CheckpointError, Manifest, OperatorEntry};

/// An operator whose state would be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vanished {
    /// Its uid.
    pub uid: String,
    /// What it was.
    pub kind: String,
    /// The operator of the pipeline that it may have become: of the same kind, and unknown to the checkpoint.
    pub became: Option<String>,
}

impl Vanished {
    pub(super) fn list(vanished: &[Vanished]) -> String {
        let one = |v: &Vanished| match &v.became {
            Some(now) => {
                format!("`{}` ({}; now `{now}`? then give that one `.uid({:?})`)", v.uid, v.kind, v.uid)
            }
            None => format!("`{}` ({})", v.uid, v.kind),
        };
        vanished.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

impl Manifest {
    /// Refuses the checkpoint of another job, and one that does not fit these operators.
    ///
    /// An operator that the checkpoint does not know begins without state. One that is gone is missed only when
    /// something of it was remembered, and `allow_dropped_state` then lets it go: its state, the position of a
    /// source, or the uncommitted output of a sink.
    ///
    /// # Errors
    /// Says which operators do not fit, and what to do about it.
    pub fn check(
        &self,
        job: &str,
        operators: &[OperatorEntry],
        max_parallelism: usize,
        allow_dropped_state: bool,
    ) -> Result<(), CheckpointError> {
        let id = self.id;
        if self.job != job {
            let (found, expected) = (self.job.clone(), job.to_owned());
            return Err(CheckpointError::OtherJob { id, found, expected });
        }
        if self.max_parallelism != max_parallelism {
            return Err(CheckpointError::MaxParallelism {
                id,
                was: self.max_parallelism,
                is: max_parallelism,
            });
        }
        for now in operators {
            if let Some(was) = self.operator(&now.uid).filter(|was| was.kind != now.kind) {
                let (uid, was, is) = (now.uid.clone(), was.kind.clone(), now.kind.clone());
                return Err(CheckpointError::KindChanged { id, uid, was, is });
            }
        }
        if allow_dropped_state {
            return Ok(());
        }
        let vanished: Vec<_> = self
            .operators
            .iter()
            .filter(|was| operators.iter().all(|now| now.uid != was.uid) && self.remembers(&was.uid))
            .map(|was| Vanished {
                uid: was.uid.clone(),
                kind: was.kind.clone(),
                became: self.successor(was, operators),
            })
            .collect();
        if vanished.is_empty() { Ok(()) } else { Err(CheckpointError::Vanished { id, vanished }) }
    }

    /// The operator that `was` may have been renamed to: among those new to the checkpoint and of its kind the one
    /// with the most similar uid.
    fn successor(&self, was: &OperatorEntry, operators: &[OperatorEntry]) -> Option<String> {
        operators
            .iter()
            .filter(|now| now.kind == was.kind && self.operator(&now.uid).is_none())
            .min_by_key(|now| edits(&was.uid, &now.uid))
            .map(|now| now.uid.clone())
    }
}

/// The number of characters to insert, delete or replace to get from one text to the other.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}
