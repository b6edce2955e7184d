//! What waits to meet somebody.
//!
//! The records of a key and a side are a vector in order of time. Few wait at a time, and most come at its end or a few
//! places before, so those that a record meets are found by comparing all; where there are many, by bisection.

use std::{collections::VecDeque, fmt, ops::Range};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Interval;
use crate::{
    join::{Matching, Side, matching::Noted},
    time::{Timestamp, Watermark},
    timers::Indexed,
};

/// The records of a key that somebody may still meet: the value that a checkpoint holds for it.
///
/// Where those that meet nobody are dropped, some that nobody can meet any more wait, too, until their vector would have
/// to grow, or the index leads here.
pub struct Waiting<L, R, M: Matching> {
    pub(super) left: Buffer<L, M::Noted>,
    pub(super) right: Buffer<R, M::Noted>,
    /// When the index leads here. Not part of the state.
    pub(super) indexed: Indexed,
}

/// Records in order of time; those of the same time in the order in which they came.
pub(super) type Buffer<T, N> = Vec<Stamped<T, N>>;

/// A record that waits.
#[derive(Clone, Debug)]
pub(super) struct Stamped<T, N> {
    pub(super) time: Timestamp,
    /// Whether it has met anybody, where that matters.
    met: N,
    pub(super) record: T,
}

/// Where a record has gone, and whom it meets on the other side.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) at: usize,
    pub(super) partners: Range<usize>,
}

/// Up to so many records are all compared: that is faster than to choose where to look.
const FEW: usize = 16;

impl<L, R, M: Matching> Default for Waiting<L, R, M> {
    #[inline]
    fn default() -> Self {
        Waiting { left: Vec::new(), right: Vec::new(), indexed: Indexed::default() }
    }
}

impl<L, R, M: Matching> Waiting<L, R, M> {
    /// Puts a record of the left side to those that wait.
    #[inline(always)]
    pub(super) fn left_arrives(
        &mut self,
        interval: &Interval,
        watermark: Watermark,
        time: Timestamp,
        record: L,
    ) -> Arrived {
        let partners = meet(&mut self.right, interval.of_left(time));
        if !M::LEFT && self.left.len() == self.left.capacity() {
            make_room(&mut self.left, |time| watermark.has_passed(interval.of_left(time).1));
        }
        let at = insert(&mut self.left, Stamped { time, met: Noted::of(!partners.is_empty()), record });
        Arrived { at, partners }
    }

    /// As [`left_arrives`](Self::left_arrives), for the right side.
    #[inline(always)]
    pub(super) fn right_arrives(
        &mut self,
        interval: &Interval,
        watermark: Watermark,
        time: Timestamp,
        record: R,
    ) -> Arrived {
        let partners = meet(&mut self.left, interval.of_right(time));
        if !M::RIGHT && self.right.len() == self.right.capacity() {
            make_room(&mut self.right, |time| watermark.has_passed(interval.of_right(time).1));
        }
        let at = insert(&mut self.right, Stamped { time, met: Noted::of(!partners.is_empty()), record });
        Arrived { at, partners }
    }

    /// When the key is to be looked at: when the first record may leave that would come out then, and if there is none,
    /// when all may leave.
    #[inline(always)]
    pub(super) fn due(&self, interval: &Interval) -> Option<Timestamp> {
        let left = if M::LEFT { self.left.first() } else { self.left.last() };
        let right = if M::RIGHT { self.right.first() } else { self.right.last() };
        let left = left.map(|left| interval.of_left(left.time).1);
        let right = right.map(|right| interval.of_right(right.time).1);
        match (left, right) {
            (Some(left), Some(right)) => Some(match (M::LEFT, M::RIGHT) {
                (false, false) => left.max(right),
                (true, false) => left,
                (false, true) => right,
                (true, true) => left.min(right),
            }),
            (left, right) => left.or(right),
        }
    }

    /// Takes out the records that nobody can meet any more, and returns those that have met nobody where they are to come
    /// out, each with its time as a result.
    ///
    /// A result has the time at which it was clear that nobody would come, or the record's, if that is later: both are
    /// ahead of the watermark that the following operators know.
    pub(super) fn leave(
        &mut self,
        interval: &Interval,
        watermark: Watermark,
    ) -> VecDeque<(Timestamp, Side<L, R>)> {
        let mut alone = VecDeque::new();
        let end = |time| interval.of_left(time).1;
        let gone = first_of(&self.left, |left| watermark.has_passed(end(left)));
        for Stamped { time, met, record } in self.left.drain(..gone) {
            if M::LEFT && !met.has_met() {
                alone.push_back((time.max(end(time)), Side::Left(record)));
            }
        }
        let end = |time| interval.of_right(time).1;
        let gone = first_of(&self.right, |right| watermark.has_passed(end(right)));
        for Stamped { time, met, record } in self.right.drain(..gone) {
            if M::RIGHT && !met.has_met() {
                alone.push_back((time.max(end(time)), Side::Right(record)));
            }
        }
        alone
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty() && self.right.is_empty()
    }

    /// Looks at the places that the next record will need, so that the processor fetches them. Returns something that
    /// depends on what is there.
    #[inline(always)]
    pub(super) fn touch(&self) -> i64 {
        let last = |time: Option<Timestamp>| time.map_or(0, Timestamp::as_millis);
        last(self.left.last().map(|left| left.time)) ^ last(self.right.last().map(|right| right.time))
    }
}

/// How many records at the front are of such times, of which none is after others.
#[inline(always)]
fn first_of<T, N>(buffer: &Buffer<T, N>, is: impl Fn(Timestamp) -> bool) -> usize {
    if buffer.len() <= FEW {
        buffer.iter().filter(|other| is(other.time)).count()
    } else {
        buffer.partition_point(|other| is(other.time))
    }
}

/// Those of a time from the first to the last of `times`, who have met somebody then.
#[inline(always)]
fn meet<T, N: Noted>(buffer: &mut Buffer<T, N>, (first, last): (Timestamp, Timestamp)) -> Range<usize> {
    let from = first_of(buffer, |time| time < first);
    let met = if buffer.len() <= FEW {
        // Times go as far as numbers do: at their end an interval may end before it begins.
        first_of(buffer, |time| time <= last).saturating_sub(from)
    } else {
        // Mostly few are in the interval, and those next to each other.
        buffer[from..].iter().take_while(|other| other.time <= last).count()
    };
    let partners = from..from + met;
    buffer[partners.clone()].iter_mut().for_each(|other| other.met.note());
    partners
}

#[inline(always)]
fn insert<T, N>(buffer: &mut Buffer<T, N>, record: Stamped<T, N>) -> usize {
    // Most records come in order.
    if buffer.last().is_none_or(|last| last.time <= record.time) {
        buffer.push(record);
        return buffer.len() - 1;
    }
    let at = first_of(buffer, |time| time <= record.time);
    buffer.insert(at, record);
    at
}

/// Before a vector grows: takes out what may leave, if it is so much that it pays to move the others.
#[inline(never)]
fn make_room<T, N>(buffer: &mut Buffer<T, N>, may_leave: impl Fn(Timestamp) -> bool) {
    let gone = first_of(buffer, may_leave);
    if gone > 0 && gone >= buffer.len() / 4 {
        buffer.drain(..gone);
    }
}

impl<T: Serialize, N: Noted> Serialize for Stamped<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.time, self.met.has_met(), &self.record).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, N: Noted> Deserialize<'de> for Stamped<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (time, met, record) = Deserialize::deserialize(deserializer)?;
        Ok(Stamped { time, met: Noted::of(met), record })
    }
}

impl<L: Serialize, R: Serialize, M: Matching> Serialize for Waiting<L, R, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.left, &self.right).serialize(serializer)
    }
}

impl<'de, L: Deserialize<'de>, R: Deserialize<'de>, M: Matching> Deserialize<'de> for Waiting<L, R, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (left, right) = Deserialize::deserialize(deserializer)?;
        Ok(Waiting { left, right, indexed: Indexed::default() })
    }
}

impl<L: Clone, R: Clone, M: Matching> Clone for Waiting<L, R, M> {
    fn clone(&self) -> Self {
        Waiting { left: self.left.clone(), right: self.right.clone(), indexed: self.indexed.clone() }
    }
}

impl<L, R, M: Matching> fmt::Debug for Waiting<L, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waiting").field(&self.left.len()).field(&self.right.len()).finish()
    }
}
