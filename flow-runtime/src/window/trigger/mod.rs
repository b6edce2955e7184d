//! Triggers: when a window fires, and whether it keeps what it holds.

mod continuous;
mod count;
mod delta;
mod event_time;
mod processing_time;
mod purging;
mod set;

pub use continuous::{
    ContinuousEventTime, ContinuousProcessingTime, continuous_event_time, continuous_processing_time,
};
pub use count::{CountTrigger, count};
pub use delta::{Delta, delta};
pub use event_time::{EventTime, Never, SlidingEventTime, TilingEventTime, event_time};
pub use processing_time::{ProcessingTime, processing_time};
pub use purging::{Purging, purging};
pub use set::Set;

use super::{Bounds, timers::Timers, timing};
use crate::{
    state::StateValue,
    time::{Timestamp, Watermark},
};

/// What a trigger decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerResult {
    /// Nothing happens.
    Continue,
    /// The window gives its result and keeps what it holds.
    Fire,
    /// The window forgets what it holds.
    Purge,
    /// The window gives its result and forgets what it holds.
    FireAndPurge,
}

impl TriggerResult {
    /// Whether the window gives its result.
    #[inline(always)]
    #[must_use]
    pub fn fires(self) -> bool {
        matches!(self, TriggerResult::Fire | TriggerResult::FireAndPurge)
    }

    /// Whether the window forgets what it holds.
    #[inline(always)]
    #[must_use]
    pub fn purges(self) -> bool {
        matches!(self, TriggerResult::Purge | TriggerResult::FireAndPurge)
    }
}

/// Decides when a window fires. One trigger serves all keys and windows; what it has to remember of one window is
/// [`State`](Self::State), which is part of every checkpoint, as are the timers that it registers.
///
/// State and timers live until the window is over, also when what it holds is purged before.
///
/// ```
/// use flow_runtime::{
///     time::Timestamp,
///     window::{Bounds, trigger::{Trigger, TriggerContext, TriggerResult}},
/// };
///
/// /// Fires at the first record of a window, and when the watermark passes its end.
/// struct FirstAndLast;
///
/// impl<In, W: Bounds> Trigger<In, W> for FirstAndLast {
///     type State = bool;
///
///     fn on_element(&self, _: &In, _: Timestamp, window: &W, cx: &mut TriggerContext<'_, bool>) -> TriggerResult {
///         cx.register_event_timer(window.max_timestamp());
///         match std::mem::replace(cx.state(), true) {
///             false => TriggerResult::Fire,
///             true => TriggerResult::Continue,
///         }
///     }
///
///     fn on_event_time(&self, _: Timestamp, _: &W, _: &mut TriggerContext<'_, bool>) -> TriggerResult {
///         TriggerResult::Fire
///     }
///
///     fn on_merge(&self, window: &W, others: Vec<bool>, cx: &mut TriggerContext<'_, bool>) {
///         *cx.state() |= others.contains(&true);
///         cx.delete_event_timers();
///         cx.register_event_timer(window.max_timestamp());
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trigger of windows over records of type `{In}`",
    note = "triggers are in `flow::window::trigger`; one of your own implements `flow::window::trigger::Trigger`"
)]
pub trait Trigger<In, W: Bounds> {
    /// What is remembered of one window.
    type State: StateValue + Default;

    /// Whether such a state says nothing, so that a global window that was purged can be forgotten.
    #[doc(hidden)]
    fn is_initial(state: &Self::State) -> bool {
        let _ = state;
        false
    }

    /// A record was put into the window.
    fn on_element(
        &self,
        record: &In,
        timestamp: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Self::State>,
    ) -> TriggerResult;

    /// The watermark has passed a time for which this trigger registered a timer.
    fn on_event_time(
        &self,
        time: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Self::State>,
    ) -> TriggerResult {
        let _ = (time, window, cx);
        TriggerResult::Continue
    }

    /// The clock has passed a time for which this trigger registered a timer.
    fn on_processing_time(
        &self,
        time: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Self::State>,
    ) -> TriggerResult {
        let _ = (time, window, cx);
        TriggerResult::Continue
    }

    /// Sessions have become one, which is `window` now; or the only one has grown to be it. The state in `cx` is that
    /// of the earliest of them, `others` those of the others. The timers of all of them have been moved to the window.
    fn on_merge(&self, window: &W, others: Vec<Self::State>, cx: &mut TriggerContext<'_, Self::State>);

    /// The window is over; state and timers vanish after this.
    fn clear(&self, window: &W, cx: &mut TriggerContext<'_, Self::State>) {
        let _ = (window, cx);
    }
}

/// What a trigger sees and sets of one window.
#[derive(Debug)]
pub struct TriggerContext<'w, S> {
    pub(super) state: &'w mut S,
    pub(super) timers: &'w mut Timers,
    pub(super) watermark: Watermark,
    pub(super) now: Timestamp,
}

impl<'w, S> TriggerContext<'w, S> {
    /// What the trigger remembers of this window.
    #[inline(always)]
    pub fn state(&mut self) -> &mut S {
        self.state
    }

    /// The current watermark.
    #[inline(always)]
    #[must_use]
    pub fn watermark(&self) -> Watermark {
        self.watermark
    }

    /// The clock, as of this batch.
    #[inline(always)]
    #[must_use]
    pub fn processing_time(&self) -> Timestamp {
        self.now
    }

    /// Asks for [`on_event_time`](Trigger::on_event_time) when the watermark passes `time`. A time is registered once,
    /// however often this is called.
    #[inline(always)]
    pub fn register_event_timer(&mut self, time: Timestamp) {
        self.timers.event.insert(time);
    }

    /// Asks for [`on_processing_time`](Trigger::on_processing_time) when the clock passes `time`.
    #[inline(always)]
    pub fn register_processing_timer(&mut self, time: Timestamp) {
        self.timers.processing.insert(time);
    }

    /// Withdraws a timer of event time.
    pub fn delete_event_timer(&mut self, time: Timestamp) {
        self.timers.event.remove(time);
    }

    /// Withdraws a timer of processing time.
    pub fn delete_processing_timer(&mut self, time: Timestamp) {
        self.timers.processing.remove(time);
    }

    /// Withdraws all timers of event time.
    pub fn delete_event_timers(&mut self) {
        self.timers.event.clear();
    }

    /// Withdraws all timers of processing time.
    pub fn delete_processing_timers(&mut self) {
        self.timers.processing.clear();
    }

    /// The same window, for a trigger with a part of the state.
    pub fn part<T>(&mut self, part: impl FnOnce(&mut S) -> &mut T) -> TriggerContext<'_, T> {
        TriggerContext {
            state: part(self.state),
            timers: self.timers,
            watermark: self.watermark,
            now: self.now,
        }
    }
}
