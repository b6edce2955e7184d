//! The marker: how far a subtask has come, as an offset that its transactions commit.
//!
//! Each subtask has a consumer group of its own, in which nobody consumes. A transaction writes the records of an epoch
//! and commits the number of the epoch as that group's offset in the topic's partition 0, so that the records are there
//! exactly when the marker says so. Beside the number are two attempts of the job: the one that owns the marker, which
//! every attempt that starts makes itself, and the one that staged the records.

use crate::{
    checkpoint::CheckpointId,
    sink::{Recovered, SinkContext},
};

use super::{Recovery, Staged};

/// What a committed offset says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The last epoch that is written.
    pub(super) epoch: u64,
    /// The attempt that may write. 0 if nobody knows, as when a person has set the offset.
    pub(super) owner: u64,
    /// The attempt that staged the epoch's records; 0 if nobody knows.
    pub(super) writer: u64,
}

impl Mark {
    pub(super) fn read(offset: i64, metadata: &str) -> Self {
        let field = |name: &str| {
            let value = metadata.split(' ').find_map(|field| field.strip_prefix(name));
            value.and_then(|value| u64::from_str_radix(value, 16).ok()).unwrap_or(0)
        };
        Mark { epoch: offset.max(0).cast_unsigned(), owner: field("owner="), writer: field("writer=") }
    }

    pub(super) fn metadata(&self) -> String {
        format!("flow owner={:x} writer={:x}", self.owner, self.writer)
    }
}

/// One sink of one job, in one attempt.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    prefix: String,
    pub(super) job: String,
    pub(super) sink: String,
    pub(super) attempt: u64,
}

/// What to do about the records of an epoch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Write,
    /// They are there already.
    Written,
    /// They must not be written, and this is why.
    Refused(String),
}

impl Owner {
    pub(super) fn new(prefix: &str, cx: &SinkContext) -> Self {
        Owner {
            prefix: prefix.to_owned(),
            job: cx.job.clone(),
            sink: cx.operator.clone(),
            attempt: cx.attempt,
        }
    }

    /// The transactional id of a subtask, and the name of its marker's group.
    pub(super) fn id(&self, subtask: usize) -> String {
        // Names with colons must not meet.
        let plain = |name: &str| name.replace('%', "%25").replace(':', "%3A");
        format!("{}:{}:{}:{subtask}", self.prefix, plain(&self.job), plain(&self.sink))
    }

    pub(super) fn place(&self, subtask: usize) -> String {
        format!("sink `{}` of job `{}`, subtask {subtask}", self.sink, self.job)
    }

    pub(super) fn owns(&self, mark: &Mark) -> bool {
        mark.owner == self.attempt
    }

    pub(super) fn taken_over(&self, subtask: usize) -> String {
        format!(
            "{}: another copy of this job has started and taken over, so this one must not write any more; if both are meant to run, give them different names",
            self.place(subtask)
        )
    }

    pub(super) fn gone(&self, subtask: usize) -> String {
        format!(
            "{}: its marker, the offset of the consumer group `{}`, is gone, so nobody knows what is written; was the group deleted, or the topic made anew?",
            self.place(subtask),
            self.id(subtask)
        )
    }

    /// Whether the records of `checkpoint` may follow what the marker says.
    pub(super) fn judge(
        &self,
        subtask: usize,
        mark: &Mark,
        checkpoint: CheckpointId,
        staged: &Staged,
    ) -> Verdict {
        if mark.epoch == checkpoint.0 && ![0, staged.attempt].contains(&mark.writer) {
            return Verdict::Refused(format!(
                "{}: another copy of this job, with checkpoints of its own, has written its checkpoint {checkpoint}, and this one's records are not there; give the two different names",
                self.place(subtask)
            ));
        }
        if mark.epoch >= checkpoint.0 {
            return Verdict::Written;
        }
        if mark.epoch == staged.previous {
            return Verdict::Write;
        }
        Verdict::Refused(format!(
            "{}: the records of checkpoint {checkpoint} follow those of checkpoint {}, but its marker, the offset of the consumer group `{}`, says that checkpoint {} was the last: was it set by hand, or the cluster restored from a backup?",
            self.place(subtask),
            staged.previous,
            self.id(subtask),
            mark.epoch
        ))
    }

    /// Where the marker of each subtask has to stand for the job to go on from its checkpoint, or why it cannot.
    ///
    /// Ahead of the checkpoint it must not be: what lies between would be written a second time. And where it is missing
    /// nobody knows whether the records that the checkpoint holds are written.
    pub(super) fn settle(
        &self,
        marks: &[Option<Mark>],
        restored: Option<CheckpointId>,
        handles: &[Recovered<Staged>],
        recovery: Recovery,
    ) -> Result<Vec<Mark>, String> {
        let start = restored.unwrap_or_default();
        // Not what this attempt itself has written, should another of its processes be faster.
        let is_ahead = |mark: &&Mark| mark.epoch > start.0 && !self.owns(mark);
        let ahead = marks.iter().flatten().filter(is_ahead).map(|mark| mark.epoch).max();
        if let Some(newest) = ahead
            && recovery != Recovery::Repeat
        {
            let from = match restored {
                Some(restored) => format!("checkpoint {restored}"),
                None => "no checkpoint".to_owned(),
            };
            return Err(format!(
                "sink `{}` of job `{}` has written up to checkpoint {newest}, as its marker, the offset of the consumer group `{}`, says, but the job starts from {from}: what lies between would be written twice. restore checkpoint {newest}, or give the job another name, or, to write it a second time, start once with `.recovery(Recovery::Repeat)`",
                self.sink,
                self.job,
                self.id(marks
                    .iter()
                    .position(|mark| mark.is_some_and(|mark| mark.epoch == newest))
                    .unwrap_or(0))
            ));
        }
        let settled = marks.iter().enumerate().map(|(subtask, mark)| {
            let of_subtask = || handles.iter().filter(|handle| handle.subtask == subtask);
            let unknown = |epoch| Mark { epoch, owner: 0, writer: 0 };
            match (mark, of_subtask().next()) {
                (Some(mark), _) if is_ahead(&mark) => Ok(unknown(start.0)),
                (Some(mark), _) => Ok(*mark),
                // Nothing is pending, so nothing can be repeated or lost.
                (None, None) => Ok(unknown(start.0)),
                (None, Some(first)) => match recovery {
                    Recovery::Repeat => Ok(unknown(first.handle.previous)),
                    Recovery::Skip => Ok(unknown(start.0)),
                    Recovery::Strict => Err(format!(
                        "{}: checkpoint {start} holds {} records that may or may not be written, and the marker, which would tell, is gone: it was the offset of the consumer group `{}`, which brokers forget {} after the last commit, or with the topic. to write the records, start once with `.recovery(Recovery::Repeat)`; to leave them out, with `.recovery(Recovery::Skip)`",
                        self.place(subtask),
                        of_subtask().map(|handle| handle.handle.records()).sum::<u64>(),
                        self.id(subtask),
                        "`offsets.retention.minutes` (7 days by default)",
                    )),
                },
            }
        });
        settled.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::kafka::sink::handle::Staging;

    fn owner() -> Owner {
        let mut cx = SinkContext::new("a:b", "counts.sink");
        cx.attempt = 7;
        Owner::new("flow", &cx)
    }

    fn staged(previous: u64) -> Staged {
        let mut staging = Staging::new(6, previous).unwrap();
        staging.add(&[0], 1).unwrap();
        staging.take(5).unwrap()
    }

    fn mark(epoch: u64, writer: u64) -> Mark {
        Mark { epoch, owner: 6, writer }
    }

    #[test]
    fn a_mark_survives_the_broker() {
        let mark = Mark { epoch: 17, owner: u64::MAX, writer: 1 };
        assert_eq!(Mark::read(17, &mark.metadata()), mark);
        assert_eq!(Mark::read(3, ""), Mark { epoch: 3, owner: 0, writer: 0 });
        assert_eq!(owner().id(2), "flow:a%3Ab:counts.sink:2");
    }

    #[test]
    fn an_epoch_is_judged_by_the_marker() {
        let judge = |mark| owner().judge(0, &mark, CheckpointId(5), &staged(3));
        assert_eq!(judge(mark(3, 1)), Verdict::Write);
        assert_eq!(judge(mark(5, 6)), Verdict::Written);
        assert_eq!(judge(mark(5, 0)), Verdict::Written);
        assert_eq!(judge(mark(6, 1)), Verdict::Written);
        let refused = |mark| match judge(mark) {
            Verdict::Refused(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(refused(mark(5, 4)).contains("checkpoints of its own"));
        assert!(refused(mark(2, 6)).contains("says that checkpoint 2 was the last"));
        assert!(refused(mark(4, 6)).contains("says that checkpoint 4 was the last"));
    }

    #[test]
    fn markers_are_settled_before_the_start() {
        let settle = |marks: &[Option<Mark>], restored: Option<u64>, handles: &[usize], recovery| {
            let handle = |subtask: &usize| Recovered {
                subtask: *subtask,
                checkpoint: CheckpointId(5),
                handle: staged(3),
            };
            let handles: Vec<_> = handles.iter().map(handle).collect();
            owner().settle(marks, restored.map(CheckpointId), &handles, recovery)
        };
        let strict = Recovery::Strict;
        let unknown = |epoch| Mark { epoch, owner: 0, writer: 0 };
        assert_eq!(settle(&[None, None], None, &[], strict), Ok(vec![unknown(0), unknown(0)]));
        assert_eq!(
            settle(&[Some(mark(3, 1)), None], Some(5), &[0], strict),
            Ok(vec![mark(3, 1), unknown(5)])
        );

        let why = settle(&[Some(mark(5, 1)), Some(mark(6, 1))], Some(5), &[], strict).unwrap_err();
        assert!(why.contains("up to checkpoint 6") && why.contains("sink:1`"), "{why}");
        assert!(why.contains("starts from checkpoint 5") && why.contains("Recovery::Repeat"), "{why}");
        assert!(
            settle(&[Some(mark(1, 1))], None, &[], Recovery::Skip).unwrap_err().contains("no checkpoint")
        );
        assert_eq!(
            settle(&[Some(mark(6, 1)), Some(mark(2, 1))], Some(5), &[0], Recovery::Repeat),
            Ok(vec![unknown(5), mark(2, 1)])
        );

        let own = Mark { epoch: 6, owner: 7, writer: 7 };
        assert_eq!(settle(&[Some(own)], Some(5), &[0], strict), Ok(vec![own]));

        let why = settle(&[None], Some(5), &[0], strict).unwrap_err();
        assert!(why.contains("holds 1 records") && why.contains("offsets.retention.minutes"), "{why}");
        assert_eq!(settle(&[None], Some(5), &[0], Recovery::Repeat), Ok(vec![unknown(3)]));
        assert_eq!(settle(&[None], Some(5), &[0], Recovery::Skip), Ok(vec![unknown(5)]));
    }
}
