//! Firing by the number of records.

use super::{Trigger, TriggerContext, TriggerResult};
use crate::{time::Timestamp, window::Bounds};

/// Fires whenever `n` records have come since the last firing. Takes the place of the default trigger: a window over
/// time does not fire at its end then.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{trigger, tumbling, windows};
///
/// let hundreds = windows(tumbling(Duration::from_secs(60))).trigger(trigger::count(100));
/// ```
#[must_use]
pub const fn count(n: u64) -> CountTrigger {
    CountTrigger { n }
}

/// See [`count`].
#[derive(Clone, Copy, Debug)]
pub struct CountTrigger {
    n: u64,
}

impl<In, W: Bounds> Trigger<In, W> for CountTrigger {
    type State = u64;

    fn is_initial(count: &u64) -> bool {
        *count == 0
    }

    #[inline(always)]
    fn on_element(&self, _: &In, _: Timestamp, _: &W, cx: &mut TriggerContext<'_, u64>) -> TriggerResult {
        let count = cx.state();
        *count += 1;
        if *count < self.n {
            return TriggerResult::Continue;
        }
        *count = 0;
        TriggerResult::Fire
    }

    fn on_merge(&self, _: &W, others: Vec<u64>, cx: &mut TriggerContext<'_, u64>) {
        *cx.state() += others.iter().sum::<u64>();
    }
}
