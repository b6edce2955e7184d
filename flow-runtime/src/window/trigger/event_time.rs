//! The default triggers.

use super::{Trigger, TriggerContext, TriggerResult, timing};
use crate::{time::Timestamp, timers::Indexed, window::Bounds};

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

/// The same for sliding windows, which may share what they hold: their default.
#[derive(Clone, Copy, Debug)]
pub struct SlidingEventTime;

/// The same for windows that follow one another without overlap or gap, each of which fires by itself: their default.
#[derive(Clone, Copy, Debug)]
pub struct TilingEventTime;

/// As a default trigger, which remembers nothing.
macro_rules! at_the_end {
    ($($trigger:ty, $key:ty;)*) => { $(
        impl<In, W: Bounds> timing::Triggering<In, W> for $trigger {
            type Timing = timing::AtTheEnd<$key>;

            #[inline(always)]
            fn on_element(
                &self, _: &In, _: Timestamp, window: &W, (): &mut (), moment: timing::Moment,
            ) -> TriggerResult {
                match moment.watermark.has_passed(window.max_timestamp()) {
                    true => TriggerResult::Fire,
                    false => TriggerResult::Continue,
                }
            }

            fn on_event_time(&self, _: Timestamp, _: &W, (): &mut (), _: timing::Moment) -> TriggerResult {
                TriggerResult::Continue
            }

            fn on_processing_time(&self, _: Timestamp, _: &W, (): &mut (), _: timing::Moment) -> TriggerResult {
                TriggerResult::Continue
            }

            fn on_merge(&self, _: &W, _: Vec<()>, (): &mut (), _: timing::Moment) {}

            fn clear(&self, _: &W, (): &mut (), _: timing::Moment) {}

            fn says_nothing((): &()) -> bool {
                true
            }
        }
    )* };
}
at_the_end! {
    EventTime, Indexed;
    SlidingEventTime, timing::Sliced;
    TilingEventTime, timing::Each;
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
