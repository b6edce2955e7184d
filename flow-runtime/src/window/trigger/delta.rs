//! Firing by how far records are from each other.

use super::{Trigger, TriggerContext, TriggerResult};
use crate::{state::StateValue, time::Timestamp, window::Bounds};

/// Fires when the distance from the record of the last firing (at first: from the first record) exceeds `threshold`.
///
/// ```
/// use flow_runtime::window::{global, trigger, windows};
///
/// struct Position { metres: f64 }
/// let every_kilometre = windows(global())
///     .trigger(trigger::delta(1000.0, |last: &Position, now: &Position| now.metres - last.metres));
/// ```
#[must_use]
pub const fn delta<F>(threshold: f64, distance: F) -> Delta<F> {
    Delta { threshold, distance }
}

/// See [`delta`].
#[derive(Clone, Copy, Debug)]
pub struct Delta<F> {
    threshold: f64,
    distance: F,
}

impl<In: StateValue, W: Bounds, F: Fn(&In, &In) -> f64> Trigger<In, W> for Delta<F> {
    /// The record of the last firing.
    type State = Option<In>;

    fn on_element(
        &self,
        record: &In,
        _: Timestamp,
        _: &W,
        cx: &mut TriggerContext<'_, Option<In>>,
    ) -> TriggerResult {
        match cx.state() {
            Some(last) if (self.distance)(last, record) > self.threshold => {
                *last = record.clone();
                TriggerResult::Fire
            }
            Some(_) => TriggerResult::Continue,
            none => {
                *none = Some(record.clone());
                TriggerResult::Continue
            }
        }
    }

    fn on_merge(&self, _: &W, others: Vec<Option<In>>, cx: &mut TriggerContext<'_, Option<In>>) {
        // What the latest session was measured from.
        if let Some(last) = others.into_iter().flatten().last() {
            *cx.state() = Some(last);
        }
    }
}
