//! What a key holds of its windows that follow one another.
//!
//! The records of a side are a vector in the order of their windows: the newest one grows at its end, the oldest one is
//! taken out at its front, and there is no memory to be had or given back for each window. Where there are many, a record
//! of an earlier window goes to the end, too, and the vector is sorted before a window is taken out.

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
    /// Whether a record may be behind those of later windows.
    mixed: bool,
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
        Rows { left: Vec::new(), right: Vec::new(), mixed: false, size, indexed: Indexed::default() }
    }

    #[inline(always)]
    pub(super) fn add_left(&mut self, last: Timestamp, record: L) {
        self.mixed |= !add(&mut self.left, Row { last, record });
    }

    #[inline(always)]
    pub(super) fn add_right(&mut self, last: Timestamp, record: R) {
        self.mixed |= !add(&mut self.right, Row { last, record });
    }

    /// The last millisecond of the first window, when something has been taken out since records were added.
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
        if self.mixed {
            self.sort();
        }
        take(&mut self.left, last, left);
        take(&mut self.right, last, right);
    }

    #[cold]
    fn sort(&mut self) {
        // Those of a window stay in the order in which they came.
        self.left.sort_by_key(|row| row.last);
        self.right.sort_by_key(|row| row.last);
        self.mixed = false;
    }

    /// Looks at the places that the next record will need, so that the processor fetches them. Returns something that
    /// depends on what is there.
    #[inline(always)]
    pub(super) fn touch(&self) -> i64 {
        let last = |last: Option<Timestamp>| last.map_or(0, Timestamp::as_millis);
        last(self.left.last().map(|row| row.last)) ^ last(self.right.last().map(|row| row.last))
    }
}

/// Up to so many are all compared: that is faster than to choose where to look.
const FEW: usize = 16;

/// How many are of windows up to the one that ends with `last`.
#[inline(always)]
fn until<T>(rows: &[Row<T>], last: Timestamp) -> usize {
    if rows.len() <= FEW {
        rows.iter().filter(|row| row.last <= last).count()
    } else {
        rows.partition_point(|row| row.last <= last)
    }
}

/// Returns whether it is in its place.
#[inline(always)]
fn add<T>(rows: &mut Vec<Row<T>>, row: Row<T>) -> bool {
    // Most records are of the newest window.
    let newest = rows.last().is_none_or(|newest| newest.last <= row.last);
    if newest || rows.len() > FEW {
        rows.push(row);
        return newest;
    }
    rows.insert(until(rows, row.last), row);
    true
}

#[inline(always)]
fn take<T>(rows: &mut Vec<Row<T>>, last: Timestamp, to: &mut Vec<T>) {
    to.extend(rows.drain(..until(rows, last)).map(|row| row.record));
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
        let (left, right) = (sorted(&self.left), sorted(&self.right));
        let (mut left, mut right) = (&left[..], &right[..]);
        let mut windows = Vec::new();
        while let Some(first) =
            left.first().map(|row| row.0).into_iter().chain(right.first().map(|row| row.0)).min()
        {
            let sides = SidesOf { left: of_window(&mut left, first), right: of_window(&mut right, first) };
            let end = first.plus_millis(1);
            windows.push((end.plus_millis(self.size.saturating_neg()), end, Some((sides,)), (), [first], []));
        }
        windows
    }
}

/// Records with the last milliseconds of their windows, in the order of these.
fn sorted<T>(rows: &[Row<T>]) -> Vec<(Timestamp, &T)> {
    let mut sorted: Vec<_> = rows.iter().map(|row| (row.last, &row.record)).collect();
    sorted.sort_by_key(|row| row.0);
    sorted
}

/// Takes the records of a window from the front.
fn of_window<'r, T>(rows: &mut &[(Timestamp, &'r T)], last: Timestamp) -> Vec<&'r T> {
    let (window, rest) = rows.split_at(rows.partition_point(|row| row.0 <= last));
    *rows = rest;
    window.iter().map(|row| row.1).collect()
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
