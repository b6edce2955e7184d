//! By how much windows are shifted.

use std::time::Duration;

use super::millis;

/// By how much windows are shifted against the epoch: forwards, or backwards when negative.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::time::Offset;
///
/// assert_eq!(Offset::from(Duration::from_secs(3600)).as_millis(), 3_600_000);
/// assert_eq!(Offset::back(Duration::from_secs(3600)).as_millis(), -3_600_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset(i64);

impl Offset {
    /// Forwards by so many milliseconds, or backwards when negative.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Offset(millis)
    }

    /// Backwards.
    #[must_use]
    pub const fn back(duration: Duration) -> Self {
        Offset(-millis(duration))
    }

    /// In milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }
}

impl From<Duration> for Offset {
    fn from(duration: Duration) -> Self {
        Offset(millis(duration))
    }
}

impl From<jiff::SignedDuration> for Offset {
    fn from(duration: jiff::SignedDuration) -> Self {
        let (limit, millis) = (i128::from(i64::MAX), duration.as_millis());
        Offset(millis.clamp(-limit, limit) as i64)
    }
}
