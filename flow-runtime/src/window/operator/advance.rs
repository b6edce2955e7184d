//! What becomes due by the watermark or the clock.

use super::{WindowsMut, timing::Timing};
use crate::{
    error::BoxError,
    state::StoredKey,
    time::{Timestamp, Watermark},
    window::{Definition, Windowing, state::List},
};

/// How many entries are fetched from memory at a time.
const FETCHED: usize = 16;

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    /// The watermark has come so far: windows whose end it has passed fire, in the order of their timers, and those
    /// that are over vanish. A watermark never goes back; an earlier one than the last changes nothing.
    ///
    /// The results have to be taken out, by [`fired`](Self::fired), before the watermark goes on. At the end of the
    /// input, [`Watermark::MAX`] fires all windows over event time, but no timers of processing time.
    ///
    /// # Errors
    /// Those of the user's functions.
    pub fn advance(&mut self, watermark: Watermark) -> Result<(), BoxError> {
        self.advance_some(watermark, usize::MAX)?;
        Ok(())
    }

    /// As [`advance`](Self::advance), but stops when there are `limit` results or a few more. Returns whether something
    /// is left: then take out the results and call it again, with the same watermark or a later one.
    ///
    /// # Errors
    /// Those of the user's functions.
    pub fn advance_some(&mut self, watermark: Watermark, limit: usize) -> Result<bool, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        core.index_all(table);
        core.set_watermark(core.firing.watermark.max(watermark));
        let until = core.firing.watermark.timestamp();
        let mut fetched = 0;
        while let Some((time, lead)) = core.event.pop_until(until) {
            if fetched == 0 {
                let next = core.event.coming(FETCHED);
                table.fetch(next.iter().map(S::Timing::hash), |state| state.open.len());
                fetched = next.len() + 1;
            }
            fetched -= 1;
            S::Timing::due(core, table, time, lead)?;
            if core.firing.fired.len() >= limit {
                let next = core.event.first().into_iter().chain(core.over.first()).min();
                return Ok(next.is_some_and(|next| next <= until));
            }
        }
        while let Some((time, lead)) = core.over.pop_until(until) {
            S::Timing::over(core, table, time, lead);
        }
        Ok(false)
    }

    /// The clock has come so far. In processing time windows fire by it as by a watermark otherwise, and records that
    /// come from now on have this time.
    ///
    /// # Errors
    /// Those of the user's functions.
    pub fn advance_processing_time(&mut self, now: Timestamp) -> Result<(), BoxError> {
        self.advance_clock(now, usize::MAX)?;
        Ok(())
    }

    /// As [`advance_processing_time`](Self::advance_processing_time), but, in processing time, stops as
    /// [`advance_some`](Self::advance_some) does.
    pub(in crate::window) fn advance_clock(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<bool, BoxError> {
        let firing = &mut self.core.firing;
        firing.now = firing.now.max(now);
        if !<S::Assigner as Windowing>::BY_CLOCK {
            self.fire_by_clock(self.core.firing.now)?;
            return Ok(false);
        }
        // The present moment is not over.
        let over = firing.now.plus_millis(-1);
        // Before windows that are over vanish.
        self.fire_by_clock(over)?;
        self.advance_some(Watermark::new(over), limit)
    }

    /// Fires what triggers have asked for at times of the clock.
    fn fire_by_clock(&mut self, until: Timestamp) -> Result<(), BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        core.index_all(table);
        while let Some((time, lead)) = core.processing.pop_until(until) {
            S::Timing::due_by_clock(core, table, time, lead)?;
        }
        Ok(())
    }

    /// When [`advance_processing_time`](Self::advance_processing_time) is to be called next; perhaps a little too
    /// early.
    #[must_use]
    pub fn next_processing_timer(&mut self) -> Option<Timestamp> {
        self.core.index_all(&self.table);
        let by_clock = self.core.event.first().filter(|_| <S::Assigner as Windowing>::BY_CLOCK);
        self.core.processing.first().into_iter().chain(by_clock).min()
    }
}
