//! A partition, and how far it was read.

use std::{fmt::Write, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::source::Split;

/// A partition of a topic and the offset to be read next.
///
/// The offset lives in the job's checkpoint, never in the cluster: what a consumer group has committed plays no
/// part in a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KafkaSplit {
    topic: Arc<str>,
    partition: i32,
    next: i64,
    /// In the split, so that a restored job stops where the first one would have.
    #[serde(default)]
    end: Option<i64>,
}

impl KafkaSplit {
    /// The partition `partition` of `topic` from the offset `next` on.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32, next: i64) -> Self {
        KafkaSplit { topic: topic.into(), partition, next, end: None }
    }

    /// The same, read up to but without the offset `end`.
    pub fn until(mut self, end: i64) -> Self {
        self.end = Some(end);
        self
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The partition's number.
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// The offset of the record to be read next.
    pub fn next(&self) -> i64 {
        self.next
    }

    /// The offset before which reading stops, if it does.
    pub fn end(&self) -> Option<i64> {
        self.end
    }

    pub(super) fn topic_name(&self) -> &Arc<str> {
        &self.topic
    }

    pub(super) fn advance(&mut self, next: i64) {
        self.next = next;
    }

    pub(super) fn set_end(&mut self, end: Option<i64>) {
        self.end = end;
    }
}

/// What names the split of a partition.
pub(super) fn split_id(topic: &str, partition: i32) -> String {
    let mut id = String::new();
    write_id(topic, partition, &mut id);
    id
}

fn write_id(topic: &str, partition: i32, to: &mut String) {
    let _ = write!(to, "{topic}-{partition}");
}

impl Split for KafkaSplit {
    fn id(&self) -> String {
        split_id(&self.topic, self.partition)
    }

    fn write_id(&self, to: &mut String) {
        write_id(&self.topic, self.partition, to);
    }

    fn position(&self) -> String {
        format!("offset {}", self.next)
    }

    fn is_finished(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }
}
