//! Whose transactions they are.

use super::id;
use crate::sink::SinkContext;

/// One sink of one job, in one attempt.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) job: String,
    pub(super) sink: String,
    pub(super) attempt: u64,
}

impl Owner {
    pub(super) fn new(cx: &SinkContext) -> Self {
        Owner { job: cx.job.clone(), sink: cx.operator.clone(), attempt: cx.attempt }
    }

    /// What the names of all its transactions begin with, in every attempt.
    pub(super) fn prefix(&self) -> String {
        id::sink_prefix(&self.job, &self.sink)
    }

    /// Why it must not go on.
    pub(super) fn fenced(&self) -> String {
        format!(
            "sink `{}` of job `{}`: another copy of this job has started and taken over, so this one must not write any more; if both are meant to run, give them different names",
            self.sink, self.job
        )
    }
}
