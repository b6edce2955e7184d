//! Joins against naive evaluations that keep all records.

mod cases;
mod interval;
mod window;

use super::{Matching, Pair};
use crate::window::tests::lent;

/// A result: of which key, of which records, at which time.
type Row = (u32, Option<i64>, Option<i64>, i64);

/// A record, or that there is none.
trait Maybe {
    fn maybe(self) -> Option<i64>;
}

impl Maybe for &i64 {
    fn maybe(self) -> Option<i64> {
        Some(*self)
    }
}

impl Maybe for Option<&i64> {
    fn maybe(self) -> Option<i64> {
        self.copied()
    }
}

/// A join of numbers.
trait OfNumbers: for<'p> Matching<Left<'p, i64>: Maybe, Right<'p, i64>: Maybe> {}
impl<M: for<'p> Matching<Left<'p, i64>: Maybe, Right<'p, i64>: Maybe>> OfNumbers for M {}

fn row<M: OfNumbers>(pair: Pair<'_, u32, i64, i64, M>) -> Row {
    (lent(pair.key), pair.left.maybe(), pair.right.maybe(), pair.timestamp.as_millis())
}
