//! What waits to meet somebody.

use std::collections::VecDeque;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Interval;
use crate::{
    join::{Matching, Side},
    time::{Timestamp, Watermark},
    timers::Indexed,
};

/// The records of a key that somebody may still meet: the value that a checkpoint holds for it.
#[derive(Clone, Debug)]
pub struct Waiting<L, R> {
    pub(super) left: Buffer<L>,
    pub(super) right: Buffer<R>,
    /// When the index leads here. Not part of the state.
    pub(super) indexed: Indexed,
}

/// Records in order of time; those of the same time in the order in which they came.
pub(super) type Buffer<T> = VecDeque<Stamped<T>>;

/// A record that waits: when it was, whether it has met anybody, and itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stamped<T>(pub(super) Timestamp, pub(super) bool, pub(super) T);

/// Where a record has gone, and whom it meets on the other side.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) side: Side<(), ()>,
    pub(super) at: usize,
    pub(super) partners: std::ops::Range<usize>,
}

impl<L, R> Default for Waiting<L, R> {
    #[inline]
    fn default() -> Self {
        Waiting { left: VecDeque::new(), right: VecDeque::new(), indexed: Indexed::default() }
    }
}

impl<L, R> Waiting<L, R> {
    /// Puts a record to those that wait. Who has met somebody is noted only where it matters.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        interval: &Interval,
        time: Timestamp,
        record: Side<L, R>,
        outer: bool,
    ) -> Arrived {
        match record {
            Side::Left(record) => {
                let partners = meet(&mut self.right, interval.of_left(time), outer);
                let at = insert(&mut self.left, Stamped(time, !partners.is_empty(), record));
                Arrived { side: Side::Left(()), at, partners }
            }
            Side::Right(record) => {
                let partners = meet(&mut self.left, interval.of_right(time), outer);
                let at = insert(&mut self.right, Stamped(time, !partners.is_empty(), record));
                Arrived { side: Side::Right(()), at, partners }
            }
        }
    }

    /// When the first record may leave.
    #[inline]
    pub(super) fn next_to_leave(&self, interval: &Interval) -> Option<Timestamp> {
        let left = self.left.front().map(|first| interval.of_left(first.0).1);
        let right = self.right.front().map(|first| interval.of_right(first.0).1);
        left.into_iter().chain(right).min()
    }

    /// Takes out the records that nobody can meet any more, and returns those that have met nobody where they are to come
    /// out, each with its time as a result.
    ///
    /// A result has the time at which it was clear that nobody would come, or the record's, if that is later: both are
    /// ahead of the watermark that the following operators know.
    pub(super) fn leave<M: Matching>(
        &mut self,
        interval: &Interval,
        watermark: Watermark,
    ) -> VecDeque<(Timestamp, Side<L, R>)> {
        let mut alone = VecDeque::new();
        while let Some(first) = self.left.front() {
            let end = interval.of_left(first.0).1;
            if !watermark.has_passed(end) {
                break;
            }
            let Some(Stamped(time, met, record)) = self.left.pop_front() else { break };
            if M::LEFT && !met {
                alone.push_back((time.max(end), Side::Left(record)));
            }
        }
        while let Some(first) = self.right.front() {
            let end = interval.of_right(first.0).1;
            if !watermark.has_passed(end) {
                break;
            }
            let Some(Stamped(time, met, record)) = self.right.pop_front() else { break };
            if M::RIGHT && !met {
                alone.push_back((time.max(end), Side::Right(record)));
            }
        }
        alone
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty() && self.right.is_empty()
    }
}

/// Those of a time from the first to the last of `times`.
#[inline]
fn meet<T>(
    buffer: &mut Buffer<T>,
    (first, last): (Timestamp, Timestamp),
    outer: bool,
) -> std::ops::Range<usize> {
    let from = buffer.partition_point(|other| other.0 < first);
    // Mostly few are in the interval, and those next to each other.
    let met = buffer.range(from..).take_while(|other| other.0 <= last).count();
    if outer {
        buffer.range_mut(from..from + met).for_each(|other| other.1 = true);
    }
    from..from + met
}

#[inline]
fn insert<T>(buffer: &mut Buffer<T>, record: Stamped<T>) -> usize {
    // Most records come in order.
    if buffer.back().is_none_or(|last| last.0 <= record.0) {
        buffer.push_back(record);
        return buffer.len() - 1;
    }
    let at = buffer.partition_point(|other| other.0 <= record.0);
    buffer.insert(at, record);
    at
}

impl<L: Serialize, R: Serialize> Serialize for Waiting<L, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.left, &self.right).serialize(serializer)
    }
}

impl<'de, L: Deserialize<'de>, R: Deserialize<'de>> Deserialize<'de> for Waiting<L, R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (left, right) = Deserialize::deserialize(deserializer)?;
        Ok(Waiting { left, right, indexed: Indexed::default() })
    }
}
