//! Windows that forget when they fire.

use super::{Trigger, TriggerContext, TriggerResult};
use crate::{time::Timestamp, window::Bounds};

/// Makes a trigger purge the window whenever it fires: every result is made of what came since the one before.
///
/// ```
/// use flow_runtime::window::{global, trigger, windows};
///
/// let hundreds = windows(global()).trigger(trigger::purging(trigger::count(100)));
/// ```
#[must_use]
pub const fn purging<T>(trigger: T) -> Purging<T> {
    Purging { trigger }
}

/// See [`purging`].
#[derive(Clone, Copy, Debug)]
pub struct Purging<T> {
    trigger: T,
}

#[inline(always)]
fn purge(result: TriggerResult) -> TriggerResult {
    match result {
        TriggerResult::Fire => TriggerResult::FireAndPurge,
        other => other,
    }
}

impl<In, W: Bounds, T: Trigger<In, W>> Trigger<In, W> for Purging<T> {
    type State = T::State;

    fn is_initial(state: &T::State) -> bool {
        T::is_initial(state)
    }

    #[inline(always)]
    fn on_element(
        &self,
        record: &In,
        timestamp: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Self::State>,
    ) -> TriggerResult {
        purge(self.trigger.on_element(record, timestamp, window, cx))
    }

    fn on_event_time(
        &self,
        time: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Self::State>,
    ) -> TriggerResult {
        purge(self.trigger.on_event_time(time, window, cx))
    }

    fn on_processing_time(
        &self,
        time: Timestamp,
        window: &W,
        cx: &mut TriggerContext<'_, Self::State>,
    ) -> TriggerResult {
        purge(self.trigger.on_processing_time(time, window, cx))
    }

    fn on_merge(&self, window: &W, others: Vec<Self::State>, cx: &mut TriggerContext<'_, Self::State>) {
        self.trigger.on_merge(window, others, cx);
    }

    fn clear(&self, window: &W, cx: &mut TriggerContext<'_, Self::State>) {
        self.trigger.clear(window, cx);
    }
}
