//! The default triggers.

use super::{Trigger, TriggerContext, TriggerResult};
use crate::{time::Timestamp, window::Bounds};

/// Fires when the watermark passes the end of the window, and at every late record after that. The default of windows
/// over event time.
#[must_use]
pub const fn event_time() -> EventTime {
    EventTime
}

/// See [`event_time`].
#[derive(Clone, Copy, Debug)]
pub struct EventTime;

impl<In, W: Bounds> Trigger<In, W> for EventTime {
    type State = ();

    const AT_THE_END: bool = true;

    #[inline(always)]
    fn on_element(&self, _: &In, _: Timestamp, window: &W, cx: &mut TriggerContext<'_, ()>) -> TriggerResult {
        if cx.watermark().has_passed(window.max_timestamp()) {
            return TriggerResult::Fire;
        }
        cx.register_event_timer(window.max_timestamp());
        TriggerResult::Continue
    }

    #[inline]
    fn on_event_time(&self, time: Timestamp, window: &W, _: &mut TriggerContext<'_, ()>) -> TriggerResult {
        if time == window.max_timestamp() { TriggerResult::Fire } else { TriggerResult::Continue }
    }

    fn on_merge(&self, window: &W, _: Vec<()>, cx: &mut TriggerContext<'_, ()>) {
        cx.delete_event_timers();
        // When it has passed already, the record that merged them fires.
        if !cx.watermark().has_passed(window.max_timestamp()) {
            cx.register_event_timer(window.max_timestamp());
        }
    }
}

/// Never fires: the default of the global window.
#[derive(Clone, Copy, Debug)]
pub struct Never;

impl<In, W: Bounds> Trigger<In, W> for Never {
    type State = ();

    #[inline(always)]
    fn on_element(&self, _: &In, _: Timestamp, _: &W, _: &mut TriggerContext<'_, ()>) -> TriggerResult {
        TriggerResult::Continue
    }

    fn on_merge(&self, _: &W, _: Vec<()>, _: &mut TriggerContext<'_, ()>) {}
}
