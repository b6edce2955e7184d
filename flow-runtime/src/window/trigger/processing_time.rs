//! Firing by the clock.

use super::{Trigger, TriggerContext, TriggerResult};
use crate::{time::Timestamp, window::Bounds};

/// Fires when the clock of the machine passes the end of the window.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{trigger, tumbling, windows};
///
/// let minutes = windows(tumbling(Duration::from_secs(60))).trigger(trigger::processing_time());
/// ```
#[must_use]
pub const fn processing_time() -> ProcessingTime {
    ProcessingTime
}

/// See [`processing_time`].
#[derive(Clone, Copy, Debug)]
pub struct ProcessingTime;

impl<In, W: Bounds> Trigger<In, W> for ProcessingTime {
    type State = ();

    #[inline(always)]
    fn on_element(&self, _: &In, _: Timestamp, window: &W, cx: &mut TriggerContext<'_, ()>) -> TriggerResult {
        cx.register_processing_timer(window.max_timestamp());
        TriggerResult::Continue
    }

    fn on_processing_time(
        &self,
        time: Timestamp,
        window: &W,
        _: &mut TriggerContext<'_, ()>,
    ) -> TriggerResult {
        if time == window.max_timestamp() { TriggerResult::Fire } else { TriggerResult::Continue }
    }

    fn on_merge(&self, window: &W, _: Vec<()>, cx: &mut TriggerContext<'_, ()>) {
        cx.delete_processing_timers();
        cx.register_processing_timer(window.max_timestamp());
    }
}
