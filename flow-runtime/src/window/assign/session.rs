//! Windows of activity, which end with a gap.

use std::{iter, time::Duration};

use super::{Assigner, Windowing};
use crate::{
    error::BoxError,
    time::{Timestamp, millis},
    window::Window,
};

/// Sessions: records of a key with less than `gap` between one and the next, or exactly that, are in one window. It
/// reaches from the first one to `gap` after the last.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::session;
///
/// let visits = session(Duration::from_secs(30 * 60));
/// ```
#[must_use]
pub const fn session(gap: Duration) -> Session<Gap> {
    Session { gap: Gap(millis(gap)), fixed: Some(millis(gap)) }
}

/// Sessions with a gap that depends on the record, at least a millisecond.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::session_with;
///
/// struct Click { on_mobile: bool }
/// let visits = session_with(|click: &Click| Duration::from_secs(if click.on_mobile { 600 } else { 1800 }));
/// ```
#[must_use]
pub const fn session_with<F>(gap: F) -> Session<F> {
    Session { gap, fixed: None }
}

/// See [`session`] and [`session_with`].
#[derive(Clone, Copy, Debug)]
pub struct Session<G> {
    gap: G,
    /// The gap, when it does not depend on the record.
    fixed: Option<i64>,
}

/// A gap that is always the same.
#[derive(Clone, Copy, Debug)]
pub struct Gap(i64);

impl Session<Gap> {
    /// As [`session`], with what is wrong found at compile time when evaluated in a `const`.
    ///
    /// # Panics
    /// When `gap` is not positive.
    #[must_use]
    pub const fn of_millis(gap: i64) -> Self {
        assert!(gap > 0, "the gap of a session must be positive");
        Session { gap: Gap(gap), fixed: Some(gap) }
    }
}

/// How long after a record its session ends.
pub trait SessionGap<In> {
    /// In milliseconds.
    fn millis(&self, record: &In) -> i64;
}

impl<In> SessionGap<In> for Gap {
    #[inline(always)]
    fn millis(&self, _: &In) -> i64 {
        self.0
    }
}

impl<In, F: Fn(&In) -> Duration> SessionGap<In> for F {
    #[inline(always)]
    fn millis(&self, record: &In) -> i64 {
        millis(self(record)).max(1)
    }
}

impl<G> Windowing for Session<G> {
    over_time!();

    const MERGING: bool = true;

    fn check(&self) -> Result<(), BoxError> {
        match self.fixed {
            Some(..=0) => Err("the gap of a session must be at least one millisecond".into()),
            _ => Ok(()),
        }
    }
}

impl<In, G: SessionGap<In>> Assigner<In> for Session<G> {
    type Windows = iter::Once<Window>;

    #[inline(always)]
    fn assign(&self, record: &In, timestamp: Timestamp) -> Self::Windows {
        // A gap is positive, so that there is one way to overflow only.
        let end = timestamp.as_millis().checked_add(self.gap.millis(record));
        let end = end.map_or(Timestamp::MAX, Timestamp::from_millis);
        iter::once(Window { start: timestamp, end })
    }
}
