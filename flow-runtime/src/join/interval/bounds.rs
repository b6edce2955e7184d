//! How far apart in time records may be that meet.

use crate::{
    error::BoxError,
    time::{Offset, Timestamp},
};

/// From when to when a right record meets a left one, relative to the time of the left one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Interval {
    /// In milliseconds; both are inclusive.
    lower: i64,
    upper: i64,
}

/// From `lower` to `upper` after the left record, or before it where they are negative, both inclusive.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::{join::interval::between, time::Offset};
///
/// let interval = between(Offset::back(Duration::from_secs(5)), Duration::from_secs(10)).exclusive_upper();
/// ```
pub fn between(lower: impl Into<Offset>, upper: impl Into<Offset>) -> Interval {
    Interval { lower: lower.into().as_millis(), upper: upper.into().as_millis() }
}

impl Interval {
    /// A right record that is exactly at the lower bound meets nobody.
    pub const fn exclusive_lower(self) -> Self {
        Interval { lower: self.lower.saturating_add(1), ..self }
    }

    /// A right record that is exactly at the upper bound meets nobody.
    pub const fn exclusive_upper(self) -> Self {
        Interval { upper: self.upper.saturating_sub(1), ..self }
    }

    /// Whether any two records can meet.
    pub(crate) fn check(&self) -> Result<(), BoxError> {
        if self.lower > self.upper {
            return Err(
                "between the bounds of this join there is no time: the lower one is above the upper one, or \
                        they are equal and exclusive"
                    .into(),
            );
        }
        Ok(())
    }

    /// How far apart the bounds are, in milliseconds.
    pub(super) fn length(&self) -> u64 {
        if self.lower > self.upper { 0 } else { self.upper.abs_diff(self.lower) }
    }

    /// The times of right records that a left one meets.
    #[inline(always)]
    pub(super) fn of_left(&self, left: Timestamp) -> (Timestamp, Timestamp) {
        (left.plus_millis(self.lower), left.plus_millis(self.upper))
    }

    /// The times of left records that a right one meets.
    #[inline(always)]
    pub(super) fn of_right(&self, right: Timestamp) -> (Timestamp, Timestamp) {
        (right.plus_millis(-self.upper), right.plus_millis(-self.lower))
    }
}
