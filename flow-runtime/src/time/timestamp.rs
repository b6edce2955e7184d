//! A point in time.

use std::{
    fmt,
    ops::{Add, Sub},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// A point in event time or processing time: milliseconds since 1970-01-01 00:00 UTC, negative before.
///
/// Arithmetic with a [`Duration`] saturates at [`MIN`](Self::MIN) and [`MAX`](Self::MAX), and leaves out what is less
/// than a millisecond.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::time::Timestamp;
///
/// let noon = Timestamp::from_millis(43_200_000);
/// assert_eq!(noon.to_string(), "1970-01-01T12:00:00Z");
/// assert_eq!(noon + Duration::from_secs(1), Timestamp::from_millis(43_201_000));
/// assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Before everything.
    pub const MIN: Timestamp = Timestamp(i64::MIN);
    /// After everything.
    pub const MAX: Timestamp = Timestamp(i64::MAX);
    /// 1970-01-01 00:00 UTC.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// A number of milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Now, by the clock of this machine.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// So many milliseconds later, or earlier when negative.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Timestamp(self.0.saturating_add(millis))
    }

    /// How long after `earlier` this is; zero when it is before.
    #[must_use]
    pub const fn since(self, earlier: Timestamp) -> Duration {
        if self.0 <= earlier.0 { Duration::ZERO } else { Duration::from_millis(self.0.abs_diff(earlier.0)) }
    }
}

/// A duration in whole milliseconds, at most `i64::MAX` of them.
pub(crate) const fn millis(duration: Duration) -> i64 {
    let millis = duration.as_millis();
    if millis > i64::MAX as u128 { i64::MAX } else { millis as i64 }
}

/// The last multiple of `step`, shifted by `offset`, that is not after `time`. Rounds down also before the epoch.
#[inline(always)]
pub(crate) const fn floor(time: i64, step: i64, offset: i64) -> i64 {
    time.saturating_sub(time.saturating_sub(offset).rem_euclid(step))
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    #[inline]
    fn add(self, duration: Duration) -> Timestamp {
        self.plus_millis(millis(duration))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;
    #[inline]
    fn sub(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(millis(duration)))
    }
}

/// The millisecond in which the time is.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Timestamp(millis(after)),
            Err(before) => {
                let before = before.duration();
                let millis = millis(before);
                let part = !before.subsec_nanos().is_multiple_of(1_000_000);
                Timestamp(-millis - i64::from(part && millis < i64::MAX))
            }
        }
    }
}

/// [`MIN`](Timestamp::MIN) and [`MAX`](Timestamp::MAX) may not fit, depending on the operating system.
impl TryFrom<Timestamp> for SystemTime {
    type Error = OutOfRange;
    fn try_from(time: Timestamp) -> Result<Self, OutOfRange> {
        let distance = Duration::from_millis(time.0.unsigned_abs());
        let time_or_none =
            if time.0 < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
        time_or_none.ok_or(OutOfRange(time))
    }
}

/// The millisecond in which the time is.
impl From<jiff::Timestamp> for Timestamp {
    fn from(time: jiff::Timestamp) -> Self {
        Timestamp(i64::try_from(time.as_nanosecond().div_euclid(1_000_000)).unwrap_or(i64::MAX))
    }
}

/// The millisecond in which the time is.
impl From<&jiff::ZonedDateTime> for Timestamp {
    fn from(time: &jiff::ZonedDateTime) -> Self {
        time.timestamp().into()
    }
}

/// Years from -9999 to 9999 fit.
impl TryFrom<Timestamp> for jiff::Timestamp {
    type Error = OutOfRange;
    fn try_from(time: Timestamp) -> Result<Self, OutOfRange> {
        jiff::Timestamp::from_millisecond(time.0).map_err(|_| OutOfRange(time))
    }
}

/// A timestamp that another type of time cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the timestamp {} ms is out of the range of calendars", .0.0)]
pub struct OutOfRange(pub Timestamp);

/// In UTC, or as a number of milliseconds where the calendar ends.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::try_from(*self) {
            Ok(time) => time.fmt(f),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_round_down() {
        let time = UNIX_EPOCH - Duration::from_micros(1500);
        assert_eq!(Timestamp::from(time), Timestamp(-2));
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_millis(2)), Timestamp(-2));
        let time = jiff::Timestamp::from_microsecond(-1500).unwrap();
        assert_eq!(Timestamp::from(time), Timestamp(-2));
        assert_eq!(Timestamp::from(UNIX_EPOCH + Duration::from_micros(1500)), Timestamp(1));
    }

    #[test]
    fn conversions_go_back() {
        for millis in [0, 1, -1, 1_470_902_048_450, -62_000_000_000_000] {
            let time = Timestamp(millis);
            assert_eq!(SystemTime::try_from(time).map(Timestamp::from), Ok(time));
            assert_eq!(jiff::Timestamp::try_from(time).map(Timestamp::from), Ok(time));
        }
        assert_eq!(jiff::Timestamp::try_from(Timestamp::MAX), Err(OutOfRange(Timestamp::MAX)));
        assert_eq!(Timestamp::MAX.to_string(), "9223372036854775807 ms");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MIN - Duration::from_millis(1), Timestamp::MIN);
        assert_eq!(Timestamp::EPOCH + Duration::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::MAX.since(Timestamp::MIN), Duration::from_millis(u64::MAX));
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Duration::ZERO);
    }
}
