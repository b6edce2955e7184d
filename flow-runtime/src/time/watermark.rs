//! How far event time has come.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// No more records with a timestamp at or before this one are expected; those that come nevertheless are late.
///
/// [`MIN`](Self::MIN) is the watermark before the first one, [`MAX`](Self::MAX) the end of the input.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::time::{Timestamp, Watermark};
///
/// // Records are at most five seconds out of order.
/// let watermark = Watermark::bounded(Timestamp::from_millis(20_000), Duration::from_secs(5));
/// assert_eq!(watermark.timestamp(), Timestamp::from_millis(14_999));
/// assert!(watermark.has_passed(Timestamp::from_millis(14_999)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watermark(Timestamp);

impl Watermark {
    /// Nothing is known yet.
    pub const MIN: Watermark = Watermark(Timestamp::MIN);
    /// The end of the input.
    pub const MAX: Watermark = Watermark(Timestamp::MAX);

    /// Records up to this time, inclusively, have come.
    #[must_use]
    pub const fn new(timestamp: Timestamp) -> Self {
        Watermark(timestamp)
    }

    /// The watermark when records are at most `bound` out of order and `newest` is the newest one seen:
    /// `newest - bound - 1 ms`, since another record of the time `newest - bound` may come.
    #[must_use]
    pub fn bounded(newest: Timestamp, bound: Duration) -> Self {
        Watermark((newest - bound).plus_millis(-1))
    }

    /// The time up to which, inclusively, records have come.
    #[must_use]
    pub const fn timestamp(self) -> Timestamp {
        self.0
    }

    /// Whether no record of this time is expected any more.
    #[inline(always)]
    #[must_use]
    pub fn has_passed(self, time: Timestamp) -> bool {
        time <= self.0
    }
}

/// [`MIN`](Self::MIN).
impl Default for Watermark {
    fn default() -> Self {
        Watermark::MIN
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Watermark::MIN => f.write_str("none yet"),
            Watermark::MAX => f.write_str("the end of the input"),
            Watermark(time) => time.fmt(f),
        }
    }
}
