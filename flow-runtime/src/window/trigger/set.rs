//! Triggers that are asked, with a state and timers for each window.

use super::{Trigger, TriggerContext, TriggerResult};
use crate::{
    time::Timestamp,
    window::{
        Bounds,
        timing::{ByTrigger, Moment, Timed, Triggering},
    },
};

/// A trigger that a pipeline sets by `.trigger(..)`, or the default of an assigner of your own: for each window there
/// are its state and its timers. The defaults of windows over event time need neither.
#[derive(Clone, Copy, Debug)]
pub struct Set<T>(pub T);

#[inline(always)]
fn context<S>(of: &mut Timed<S>, Moment { watermark, now }: Moment) -> TriggerContext<'_, S> {
    TriggerContext { state: &mut of.trigger, timers: &mut of.timers, watermark, now }
}

impl<In, W: Bounds, T: Trigger<In, W>> Triggering<In, W> for Set<T> {
    type Timing = ByTrigger<T::State>;

    #[inline(always)]
    fn on_element(
        &self,
        record: &In,
        timestamp: Timestamp,
        window: &W,
        of: &mut Timed<T::State>,
        moment: Moment,
    ) -> TriggerResult {
        self.0.on_element(record, timestamp, window, &mut context(of, moment))
    }

    #[inline]
    fn on_event_time(
        &self,
        time: Timestamp,
        window: &W,
        of: &mut Timed<T::State>,
        moment: Moment,
    ) -> TriggerResult {
        self.0.on_event_time(time, window, &mut context(of, moment))
    }

    #[inline]
    fn on_processing_time(
        &self,
        time: Timestamp,
        window: &W,
        of: &mut Timed<T::State>,
        moment: Moment,
    ) -> TriggerResult {
        self.0.on_processing_time(time, window, &mut context(of, moment))
    }

    fn on_merge(&self, window: &W, others: Vec<T::State>, of: &mut Timed<T::State>, moment: Moment) {
        self.0.on_merge(window, others, &mut context(of, moment));
    }

    fn clear(&self, window: &W, of: &mut Timed<T::State>, moment: Moment) {
        self.0.clear(window, &mut context(of, moment));
    }

    fn says_nothing(of: &Timed<T::State>) -> bool {
        of.timers.is_empty() && T::is_initial(&of.trigger)
    }
}
