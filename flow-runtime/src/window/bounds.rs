//! Windows themselves.

use std::{fmt, hash::Hash};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::time::Timestamp;

/// A window over event time, from `start` inclusively to `end` exclusively.
///
/// ```
/// use flow_runtime::{time::Timestamp, window::{Bounds, Window}};
///
/// let window = Window::of_millis(0, 5000);
/// assert!(window.contains(Timestamp::from_millis(4999)));
/// assert!(!window.contains(Timestamp::from_millis(5000)));
/// assert_eq!(window.max_timestamp(), Timestamp::from_millis(4999));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Window {
    /// The first time in the window.
    pub start: Timestamp,
    /// The first time after it.
    pub end: Timestamp,
}

impl Window {
    /// From `start` to `end`, in milliseconds since the epoch.
    #[must_use]
    pub const fn of_millis(start: i64, end: i64) -> Self {
        Window { start: Timestamp::from_millis(start), end: Timestamp::from_millis(end) }
    }

    /// The last millisecond of the window, which is the time of its results.
    #[must_use]
    pub const fn max_timestamp(&self) -> Timestamp {
        self.end.plus_millis(-1)
    }

    /// Whether a time is in the window.
    #[must_use]
    pub fn contains(&self, time: Timestamp) -> bool {
        self.start <= time && time < self.end
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

/// The one window of all times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GlobalWindow;

impl fmt::Display for GlobalWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the global window")
    }
}

/// What is common to [`Window`] and [`GlobalWindow`].
pub trait Bounds:
    Copy + Ord + Hash + fmt::Debug + fmt::Display + Send + Serialize + DeserializeOwned + 'static
{
    /// The last millisecond of the window, which is the time of its results.
    fn max_timestamp(&self) -> Timestamp;

    /// The time that the window spans.
    fn span(&self) -> Window;

    /// The window of this kind that spans a time.
    fn spanning(span: Window) -> Self;

    /// Whether windows overlap, or one ends where the other starts.
    fn touches(&self, other: &Self) -> bool {
        let (a, b) = (self.span(), other.span());
        a.start <= b.end && b.start <= a.end
    }

    /// The smallest window that covers both.
    #[must_use]
    fn cover(&self, other: &Self) -> Self {
        let (a, b) = (self.span(), other.span());
        Self::spanning(Window { start: a.start.min(b.start), end: a.end.max(b.end) })
    }
}

impl Bounds for Window {
    #[inline(always)]
    fn max_timestamp(&self) -> Timestamp {
        Window::max_timestamp(self)
    }
    #[inline(always)]
    fn span(&self) -> Window {
        *self
    }
    #[inline(always)]
    fn spanning(span: Window) -> Self {
        span
    }
}

impl Bounds for GlobalWindow {
    #[inline(always)]
    fn max_timestamp(&self) -> Timestamp {
        Timestamp::MAX
    }
    fn span(&self) -> Window {
        Window { start: Timestamp::MIN, end: Timestamp::MAX }
    }
    fn spanning(_: Window) -> Self {
        GlobalWindow
    }
}
