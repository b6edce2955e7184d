//! Early results.

use std::time::Duration;

use super::{Trigger, TriggerContext, TriggerResult};
use crate::{
    time::{Timestamp, floor, millis},
    window::Bounds,
};

/// Fires whenever the watermark passes a multiple of `interval`, while the window holds records, and at its end.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{trigger, tumbling, windows};
///
/// let day = Duration::from_secs(86_400);
/// let days = windows(tumbling(day)).trigger(trigger::continuous_event_time(Duration::from_secs(60)));
/// ```
#[must_use]
pub const fn continuous_event_time(interval: Duration) -> ContinuousEventTime {
    let interval = millis(interval);
    ContinuousEventTime { interval: if interval < 1 { 1 } else { interval } }
}

/// See [`continuous_event_time`].
#[derive(Clone, Copy, Debug)]
pub struct ContinuousEventTime {
    interval: i64,
}

impl ContinuousEventTime {
    /// The next early firing is after `time`; there is none when the window ends before.
    fn register<W: Bounds>(
        self,
        time: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Option<Timestamp>>,
    ) {
        let next = floor(time.as_millis(), self.interval, 0).saturating_add(self.interval);
        self.register_at(Timestamp::from_millis(next), window, cx);
    }

    fn register_at<W: Bounds>(
        self,
        next: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Option<Timestamp>>,
    ) {
        *cx.state() = Some(next);
        if next < window.max_timestamp() {
            cx.register_event_timer(next);
        }
    }
}

impl<In, W: Bounds> Trigger<In, W> for ContinuousEventTime {
    /// The next early firing.
    type State = Option<Timestamp>;

    #[inline]
    fn on_element(
        &self,
        _: &In,
        timestamp: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Self::State>,
    ) -> TriggerResult {
        if cx.watermark().has_passed(window.max_timestamp()) {
            return TriggerResult::Fire;
        }
        if cx.state().is_none() {
            cx.register_event_timer(window.max_timestamp());
            let watermark = cx.watermark().timestamp();
            self.register(timestamp.max(watermark), window, cx);
        }
        TriggerResult::Continue
    }

    fn on_event_time(
        &self,
        time: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Self::State>,
    ) -> TriggerResult {
        if time == window.max_timestamp() {
            return TriggerResult::Fire;
        }
        if *cx.state() != Some(time) {
            return TriggerResult::Continue;
        }
        self.register(time, window, cx);
        TriggerResult::Fire
    }

    fn on_merge(&self, window: &W, others: Vec<Self::State>, cx: &mut TriggerContext<'_, Self::State>) {
        let next = others.into_iter().flatten().chain(*cx.state()).min();
        let watermark = cx.watermark();
        cx.delete_event_timers();
        if !watermark.has_passed(window.max_timestamp()) {
            cx.register_event_timer(window.max_timestamp());
        }
        match next {
            // It was after the end of the window that it was for.
            Some(next) if watermark.has_passed(next) => self.register(watermark.timestamp(), window, cx),
            Some(next) => self.register_at(next, window, cx),
            None => {}
        }
    }
}

/// Fires whenever the clock passes a multiple of `interval`, while the window holds records, and when it passes the
/// window's end.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{trigger, tumbling, windows};
///
/// let day = Duration::from_secs(86_400);
/// let every_minute = trigger::continuous_processing_time(Duration::from_secs(60));
/// let days = windows(tumbling(day).processing_time()).trigger(every_minute);
/// ```
#[must_use]
pub const fn continuous_processing_time(interval: Duration) -> ContinuousProcessingTime {
    let interval = millis(interval);
    ContinuousProcessingTime { interval: if interval < 1 { 1 } else { interval } }
}

/// See [`continuous_processing_time`].
#[derive(Clone, Copy, Debug)]
pub struct ContinuousProcessingTime {
    interval: i64,
}

impl<In, W: Bounds> Trigger<In, W> for ContinuousProcessingTime {
    type State = ();

    #[inline]
    fn on_element(&self, _: &In, _: Timestamp, window: &W, cx: &mut TriggerContext<'_, ()>) -> TriggerResult {
        let next = floor(cx.processing_time().as_millis(), self.interval, 0).saturating_add(self.interval);
        cx.register_processing_timer(Timestamp::from_millis(next).min(window.max_timestamp()));
        TriggerResult::Continue
    }

    fn on_processing_time(
        &self,
        time: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, ()>,
    ) -> TriggerResult {
        // Once, however far the clock has gone meanwhile.
        let over = cx.processing_time().plus_millis(-1).max(time);
        let next = floor(over.as_millis(), self.interval, 0).saturating_add(self.interval);
        if time < window.max_timestamp() {
            cx.register_processing_timer(Timestamp::from_millis(next).min(window.max_timestamp()));
        }
        TriggerResult::Fire
    }

    fn on_merge(&self, _: &W, _: Vec<()>, _: &mut TriggerContext<'_, ()>) {}
}
