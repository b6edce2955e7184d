//! Windows of equal size that overlap, or leave gaps.

use std::time::Duration;

use super::{Assigner, Windowing, tumbling::check_size};
use crate::{
    error::BoxError,
    time::{Offset, Timestamp, floor, millis},
    window::Window,
};

/// Windows of `size`, of which one begins every `slide`, aligned to the epoch. A record belongs to all windows that
/// contain it; when `slide` is larger than `size`, to one or none.
///
/// Aggregates with the default trigger are held once per slice that windows share, not once per window.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::{time::Timestamp, window::{Assigner, Window, sliding}};
///
/// let windows = sliding(Duration::from_secs(10), Duration::from_secs(5));
/// let windows: Vec<_> = windows.assign(&"a record", Timestamp::from_millis(7000)).collect();
/// assert_eq!(windows, [Window::of_millis(5000, 15000), Window::of_millis(0, 10000)]);
/// ```
#[must_use]
pub const fn sliding(size: Duration, slide: Duration) -> Sliding {
    Sliding { size: millis(size), slide: millis(slide), offset: 0 }
}

/// See [`sliding`].
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    size: i64,
    slide: i64,
    offset: i64,
}

impl Sliding {
    /// As [`sliding`], with what is wrong found at compile time when evaluated in a `const`.
    ///
    /// # Panics
    /// When `size` or `slide` is not positive, or `offset` not below `slide`.
    #[must_use]
    pub const fn of_millis(size: i64, slide: i64, offset: i64) -> Self {
        assert!(size > 0 && slide > 0, "the size of a window and its slide must be positive");
        assert!(offset.unsigned_abs() < slide.unsigned_abs(), "the offset must be smaller than the slide");
        Sliding { size, slide, offset }
    }

    /// Shifts the windows, by less than their slide.
    #[must_use]
    pub fn offset(mut self, offset: impl Into<Offset>) -> Self {
        self.offset = offset.into().as_millis();
        self
    }
}

impl Windowing for Sliding {
    over_time!(SlidingEventTime);

    fn check(&self) -> Result<(), BoxError> {
        check_size(self.size, self.slide, self.offset)
    }

    fn slices(&self) -> Option<Slices> {
        let Sliding { size, slide, offset } = *self;
        Some(Slices { size, slide, offset, width: gcd(size, slide) })
    }
}

impl<In> Assigner<In> for Sliding {
    type Windows = SlidingWindows;

    #[inline(always)]
    fn assign(&self, _: &In, timestamp: Timestamp) -> SlidingWindows {
        let time = timestamp.as_millis();
        SlidingWindows {
            start: floor(time, self.slide, self.offset),
            after: time.saturating_sub(self.size),
            size: self.size,
            slide: self.slide,
        }
    }
}

/// The windows that contain a time, the last one first.
#[derive(Clone, Debug)]
pub struct SlidingWindows {
    start: i64,
    after: i64,
    size: i64,
    slide: i64,
}

impl Iterator for SlidingWindows {
    type Item = Window;

    #[inline]
    fn next(&mut self) -> Option<Window> {
        if self.start <= self.after {
            return None;
        }
        let window = Window::of_millis(self.start, self.start.saturating_add(self.size));
        self.start = self.start.saturating_sub(self.slide);
        Some(window)
    }
}

const fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How sliding windows are cut so that every window is made of whole slices.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    size: i64,
    slide: i64,
    offset: i64,
    width: i64,
}

impl Slices {
    /// The slice that contains a time.
    #[inline]
    pub(crate) fn slice(&self, time: Timestamp) -> Window {
        let start = floor(time.as_millis(), self.width, self.offset);
        Window::of_millis(start, start.saturating_add(self.width))
    }

    /// Whether each slice is a window of its own.
    pub(crate) fn are_windows(&self) -> bool {
        self.slide == self.size
    }

    /// Whether some slices are in no window.
    #[inline(always)]
    pub(crate) fn have_gaps(&self) -> bool {
        self.slide > self.size
    }

    /// The last window that contains a slice; none in a gap.
    #[inline]
    pub(crate) fn last(&self, slice: Window) -> Option<Window> {
        let at = slice.start.as_millis();
        let start = floor(at, self.slide, self.offset);
        (start > at.saturating_sub(self.size)).then(|| self.window(start))
    }

    /// The first window that contains a slice and ends after `time`, which is the maximum timestamp of a window.
    pub(crate) fn first_after(&self, slice: Window, time: Timestamp) -> Option<Window> {
        let last = self.last(slice)?;
        let at = slice.start.as_millis();
        let lowest =
            at.saturating_sub(self.size).max(time.as_millis().saturating_sub(self.size).saturating_add(1));
        // The first start above `lowest`, as far below the last one as whole slides go.
        let back = last.start.as_millis().checked_sub(lowest)?.checked_sub(1).filter(|back| *back >= 0)?;
        Some(self.window(last.start.as_millis() - back / self.slide * self.slide))
    }

    fn window(&self, start: i64) -> Window {
        Window::of_millis(start, start.saturating_add(self.size))
    }

    /// The window with this maximum timestamp.
    pub(crate) fn window_until(&self, max_timestamp: Timestamp) -> Window {
        let end = max_timestamp.as_millis().saturating_add(1);
        Window::of_millis(end.saturating_sub(self.size), end)
    }
}
