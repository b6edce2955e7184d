//! Windows of equal size, one after the other.

use std::{iter, time::Duration};

use super::{Assigner, Windowing};
use crate::{
    error::BoxError,
    time::{Offset, Timestamp, floor, millis},
    window::Window,
};

/// Windows of `size`, one after the other, aligned to the epoch.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::{time::{Offset, Timestamp}, window::{Assigner, Window, tumbling}};
///
/// let days_in_beijing = tumbling(Duration::from_secs(86_400)).offset(Offset::back(Duration::from_secs(8 * 3600)));
/// let mut windows = days_in_beijing.assign(&"a record", Timestamp::from_millis(1_470_902_048_450));
/// assert_eq!(windows.next(), Some(Window::of_millis(1_470_844_800_000, 1_470_931_200_000)));
/// ```
#[must_use]
pub const fn tumbling(size: Duration) -> Tumbling {
    Tumbling { size: millis(size), offset: 0 }
}

/// See [`tumbling`].
#[derive(Clone, Copy, Debug)]
pub struct Tumbling {
    size: i64,
    offset: i64,
}

impl Tumbling {
    /// As [`tumbling`], with what is wrong found at compile time when evaluated in a `const`.
    ///
    /// # Panics
    /// When `size` is not positive, or `offset` not below it.
    #[must_use]
    pub const fn of_millis(size: i64, offset: i64) -> Self {
        assert!(size > 0, "the size of a window must be positive");
        assert!(offset.unsigned_abs() < size.unsigned_abs(), "the offset must be smaller than the window");
        Tumbling { size, offset }
    }

    /// Shifts the windows, by less than their size.
    #[must_use]
    pub fn offset(mut self, offset: impl Into<Offset>) -> Self {
        self.offset = offset.into().as_millis();
        self
    }
}

/// Whether windows of such a size and offset make sense.
pub(super) fn check_size(size: i64, step: i64, offset: i64) -> Result<(), BoxError> {
    if size <= 0 || step <= 0 {
        return Err("the size of a window and its slide must be at least one millisecond".into());
    }
    if offset.unsigned_abs() >= step.unsigned_abs() {
        return Err(format!(
            "the offset of {offset} ms must be smaller than the {step} ms from window to window"
        )
        .into());
    }
    Ok(())
}

impl Windowing for Tumbling {
    over_time!(TilingEventTime);

    const TILES: bool = true;

    fn check(&self) -> Result<(), BoxError> {
        check_size(self.size, self.size, self.offset)
    }
}

impl<In> Assigner<In> for Tumbling {
    type Windows = iter::Once<Window>;

    #[inline(always)]
    fn assign(&self, _: &In, timestamp: Timestamp) -> Self::Windows {
        let start = floor(timestamp.as_millis(), self.size, self.offset);
        iter::once(Window::of_millis(start, start.saturating_add(self.size)))
    }
}
