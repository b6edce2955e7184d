//! What a key holds of its windows that follow one another.
//!
//! The records of a side are a vector in the order of their windows: the newest one grows at its end, the oldest one is
//! taken out at its front, and there is no memory to be had or given back for each window.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Sides;
use crate::{time::Timestamp, timers::Indexed};

/// The records of a key whose windows have not fired: the value that a checkpoint holds for it.
///
/// Encoded it is what other windows would hold, so that one may become the other when a pipeline changes its allowed
/// lateness.
#[derive(Clone, Debug)]
pub struct Rows<L, R> {
    left: Vec<Row<L>>,
    right: Vec<Row<R>>,
    /// How long a window is, in milliseconds.
    size: i64,
    /// When the index leads here. Not part of the state.
    pub(super) indexed: Indexed,
}

/// A record.
#[derive(Clone, Debug)]
struct Row<T> {
    /// The last millisecond of its window.
    last: Timestamp,
    record: T,
}

impl<L, R> Rows<L, R> {
    /// Nothing yet, of windows of this size.
    #[inline]
    pub(super) fn of_size(size: i64) -> Self {
        Rows { left: Vec::new(), right: Vec::new(), size, indexed: Indexed::default() }
    }

    #[inline(always)]
    pub(super) fn add_left(&mut self, last: Timestamp, record: L) {
        add(&mut self.left, Row { last, record });
    }

    #[inline(always)]
    pub(super) fn add_right(&mut self, last: Timestamp, record: R) {
        add(&mut self.right, Row { last, record });
    }

    /// The last millisecond of the first window.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<Timestamp> {
        let (left, right) = (self.left.first(), self.right.first());
        let (left, right) = (left.map(|row| row.last), right.map(|row| row.last));
        match (left, right) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        }
    }

    /// Moves the records of the windows up to the one that ends with `last` elsewhere.
    #[inline(always)]
    pub(super) fn take(&mut self, last: Timestamp, left: &mut Vec<L>, right: &mut Vec<R>) {
        take(&mut self.left, last, left);
        take(&mut self.right, last, right);
    }

    /// Looks at the places that the next record will need, so that the processor fetches them. Returns something that
    /// depends on what is there.
    #[inline(always)]
    pub(super) fn touch(&self) -> i64 {
        let last = |last: Option<Timestamp>| last.map_or(0, Timestamp::as_millis);
        last(self.left.last().map(|row| row.last)) ^ last(self.right.last().map(|row| row.last))
    }
}

/// Up to so many are compared one after the other.
const FEW: usize = 16;

#[inline(always)]
fn add<T>(rows: &mut Vec<Row<T>>, row: Row<T>) {
    // Most records are of the newest window.
    if rows.last().is_none_or(|newest| newest.last <= row.last) {
        rows.push(row);
        return;
    }
    let at = if rows.len() <= FEW {
        rows.iter().filter(|other| other.last <= row.last).count()
    } else {
        rows.partition_point(|other| other.last <= row.last)
    };
    rows.insert(at, row);
}

#[inline(always)]
fn take<T>(rows: &mut Vec<Row<T>>, last: Timestamp, to: &mut Vec<T>) {
    let taken = if rows.len() <= FEW {
        rows.iter().filter(|row| row.last <= last).count()
    } else {
        rows.partition_point(|row| row.last <= last)
    };
    to.extend(rows.drain(..taken).map(|row| row.record));
}

/// As windows are encoded that hold other things: start and end, what is held, and the timer of the trigger.
type Encoded<H> = (Timestamp, Timestamp, Option<(H,)>, (), [Timestamp; 1], [Timestamp; 0]);

/// [`Sides`], borrowed.
#[derive(Serialize)]
#[serde(rename = "Sides")]
struct SidesOf<'r, L, R> {
    left: Vec<&'r L>,
    right: Vec<&'r R>,
}

impl<L, R> Rows<L, R> {
    fn windows(&self) -> Vec<Encoded<SidesOf<'_, L, R>>> {
        let (mut left, mut right) = (&self.left[..], &self.right[..]);
        let mut windows = Vec::new();
        while let Some(last) =
            left.first().map(|row| row.last).into_iter().chain(right.first().map(|row| row.last)).min()
        {
            let sides = SidesOf { left: of_window(&mut left, last), right: of_window(&mut right, last) };
            let end = last.plus_millis(1);
            windows.push((end.plus_millis(self.size.saturating_neg()), end, Some((sides,)), (), [last], []));
        }
        windows
    }
}

/// Takes the records of a window from the front.
fn of_window<'r, T>(rows: &mut &'r [Row<T>], last: Timestamp) -> Vec<&'r T> {
    let (window, rest) = rows.split_at(rows.partition_point(|row| row.last <= last));
    *rows = rest;
    window.iter().map(|row| &row.record).collect()
}

impl<L: Serialize, R: Serialize> Serialize for Rows<L, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (None::<Timestamp>, self.windows()).serialize(serializer)
    }
}

/// A window as it is decoded.
type Decoded<L, R> = (Timestamp, Timestamp, Option<(Sides<L, R>,)>, (), Vec<Timestamp>, Vec<Timestamp>);

impl<'de, L: Deserialize<'de>, R: Deserialize<'de>> Deserialize<'de> for Rows<L, R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (_, windows): (Option<Timestamp>, Vec<Decoded<L, R>>) = Deserialize::deserialize(deserializer)?;
        let mut rows = Rows::of_size(0);
        for (start, end, held, ..) in windows {
            rows.size = end.as_millis().saturating_sub(start.as_millis());
            let last = end.plus_millis(-1);
            if let Some((Sides { left, right },)) = held {
                rows.left.extend(left.into_iter().map(|record| Row { last, record }));
                rows.right.extend(right.into_iter().map(|record| Row { last, record }));
            }
        }
        Ok(rows)
    }
}
