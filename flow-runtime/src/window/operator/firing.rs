//! How a window fires, and when it is over.

use std::fmt;

use crate::{
    error::BoxError,
    record::{Lend, Slot},
    state::StoredKey,
    time::{Timestamp, Watermark},
    window::{
        Bounds, Definition, Windowing,
        contents::Contents,
        operator::timing::{Moment, Timing},
        state::List,
        trigger::TriggerResult,
    },
};

/// A result of a window.
pub struct Fired<K: Lend, W, R> {
    /// The key, to be lent.
    pub key: Slot<K>,
    /// The window.
    pub window: W,
    /// What it gave.
    pub result: R,
}

impl<K: Lend, W: Bounds, R> Fired<K, W, R> {
    /// The event time of the result, which is the last millisecond of the window: windows of the same size that follow
    /// line up.
    pub fn timestamp(&self) -> Timestamp {
        self.window.max_timestamp()
    }
}

impl<K: Lend, W: fmt::Debug, R: fmt::Debug> fmt::Debug for Fired<K, W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fired")
            .field("window", &self.window)
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}

/// What windows have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records that were late for all of their windows, and dropped.
    pub late_dropped: u64,
    /// Records that were late for all of their windows, and went to the late output.
    pub late_output: u64,
    /// Firings by a record that came when the watermark had passed the end of its window.
    pub late_fired: u64,
}

/// What is common to all windows of an operator.
pub(super) struct Firing<K: Lend, W, R> {
    pub(super) watermark: Watermark,
    /// The clock.
    pub(super) now: Timestamp,
    /// In milliseconds.
    pub(super) lateness: i64,
    pub(super) counters: Counters,
    pub(super) fired: Vec<Fired<K, W, R>>,
}

impl<K: StoredKey, W: Bounds, R> Firing<K, W, R> {
    pub(super) fn new(lateness: i64) -> Self {
        Firing {
            watermark: Watermark::MIN,
            now: Timestamp::MIN,
            lateness,
            counters: Counters::default(),
            fired: Vec::new(),
        }
    }

    /// When a window is over.
    #[inline(always)]
    pub(super) fn over_at(&self, window: &W) -> Timestamp {
        window.max_timestamp().plus_millis(self.lateness)
    }

    /// Whether a window takes no more records.
    #[inline(always)]
    pub(super) fn is_over<A: Windowing>(&self, window: &W) -> bool {
        A::EVENT_TIME && self.watermark.has_passed(self.over_at(window))
    }

    /// What a trigger is told.
    #[inline(always)]
    pub(super) fn moment(&self) -> Moment {
        Moment { watermark: self.watermark, now: self.now }
    }

    /// Does what the trigger decided.
    #[inline(always)]
    pub(super) fn apply<In, S>(
        &mut self,
        result: TriggerResult,
        contents: &S::Contents,
        key: &K,
        open: &mut <S::Timing as Timing>::Open<W, S::Held>,
        at: usize,
    ) -> Result<(), BoxError>
    where
        S: Definition<K, In, Window = W, Output = R>,
    {
        if result != TriggerResult::Continue {
            self.apply_some::<In, S>(result, contents, key, open, at)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn apply_some<In, S>(
        &mut self,
        result: TriggerResult,
        contents: &S::Contents,
        key: &K,
        open: &mut <S::Timing as Timing>::Open<W, S::Held>,
        at: usize,
    ) -> Result<(), BoxError>
    where
        S: Definition<K, In, Window = W, Output = R>,
    {
        if result.fires()
            && let (Some(window), Some(held)) = (open.window(at), open.held_mut(at))
        {
            self.emit::<In, S>(contents, key, window, held)?;
        }
        if result.purges() {
            open.set_held(at, None);
        }
        Ok(())
    }

    /// Takes the results of a window.
    pub(super) fn emit<In, S>(
        &mut self,
        contents: &S::Contents,
        key: &K,
        window: W,
        held: &mut S::Held,
    ) -> Result<(), BoxError>
    where
        S: Definition<K, In, Window = W, Output = R>,
    {
        let fired = &mut self.fired;
        contents.emit(key, &window, held, |result| {
            fired.push(Fired { key: Slot::new(key.clone()), window, result });
        })
    }
}
