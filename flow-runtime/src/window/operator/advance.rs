//! What becomes due by the watermark or the clock.

use super::{Core, StateOf, WindowsMut};
use crate::{
    error::BoxError,
    state::StoredKey,
    time::{Timestamp, Watermark},
    window::{Definition, Trigger, Windowing},
};

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
        self.index_all();
        let (core, table) = (&mut *self.core, &mut *self.table);
        core.firing.watermark = core.firing.watermark.max(watermark);
        let until = core.firing.watermark.timestamp();
        while let Some((time, hash)) = core.event.pop_until(until) {
            let Some(state) = table.find(hash, |state| state.event.get() == Some(time)) else {
                // The index led here earlier already.
                continue;
            };
            state.event.set(None);
            let next = core.next_event(state);
            if next.is_none_or(|next| next > time) {
                // A session that has grown, for example.
                core.index(state, hash, next, None);
                continue;
            }
            // Two keys of the same hash are told apart by what is due.
            let due = |core: &Core<K, In, S>, state: &StateOf<K, In, S>| {
                state.event.get().is_none() && core.next_event(state).is_some_and(|next| next <= time)
            };
            if let Some((key, state)) = table.find_mut(hash, |state| due(core, state)) {
                core.fire_due(key, state, time)?;
                if state.open.is_empty() {
                    table.remove_found(hash, |state| state.open.is_empty());
                } else {
                    let (event, processing) = (core.next_event(state), next_processing(state));
                    core.index(state, hash, event, processing);
                }
            }
            if core.firing.fired.len() >= limit {
                return Ok(core.event.first().is_some_and(|first| first <= until));
            }
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
        self.index_all();
        let (core, table) = (&mut *self.core, &mut *self.table);
        while let Some((time, hash)) = core.processing.pop_until(until) {
            let Some(state) = table.find(hash, |state| state.processing.get() == Some(time)) else {
                continue;
            };
            state.processing.set(None);
            let next = next_processing(state);
            if next.is_none_or(|next| next > time) {
                core.index(state, hash, None, next);
                continue;
            }
            let due = |state: &StateOf<K, In, S>| {
                state.processing.get().is_none() && next_processing(state).is_some_and(|next| next <= time)
            };
            if let Some((key, state)) = table.find_mut(hash, due) {
                core.fire_processing(key, state, time)?;
                let (event, processing) = (core.next_event(state), next_processing(state));
                core.index(state, hash, event, processing);
            }
        }
        Ok(())
    }

    /// When [`advance_processing_time`](Self::advance_processing_time) is to be called next; perhaps a little too
    /// early.
    #[must_use]
    pub fn next_processing_timer(&mut self) -> Option<Timestamp> {
        self.index_all();
        let by_clock = self.core.event.first().filter(|_| <S::Assigner as Windowing>::BY_CLOCK);
        self.core.processing.first().into_iter().chain(by_clock).min()
    }

    /// Makes the indices of what has been restored.
    #[inline]
    fn index_all(&mut self) {
        if !self.core.indexed {
            let core = &mut *self.core;
            core.indexed = true;
            for (hash, state) in self.table.hashed() {
                let event = core.next_event(state);
                core.index(state, hash, event, next_processing(state));
            }
        }
    }
}

/// When a key has to be looked at by the clock.
fn next_processing<W, H, T>(state: &crate::window::KeyWindows<W, H, T>) -> Option<Timestamp> {
    state.open.iter().filter_map(|open| open.timers.processing.first()).min()
}

impl<K: StoredKey, In: Clone, S: Definition<K, In>> Core<K, In, S> {
    /// When a key has to be looked at by event time.
    fn next_event(&self, state: &StateOf<K, In, S>) -> Option<Timestamp> {
        match self.slices {
            Some(slices) => self.next_of_slices(slices, state),
            None => state
                .open
                .iter()
                .filter_map(|open| self.firing.next_timers::<S::Assigner, _, _>(open).0)
                .min(),
        }
    }

    /// Fires what is due of a key by event time, and removes what is over.
    fn fire_due(&mut self, key: &K, state: &mut StateOf<K, In, S>, time: Timestamp) -> Result<(), BoxError> {
        if let Some(slices) = self.slices {
            return self.fire_due_slices(slices, key, state, time);
        }
        let spec = self.definition.spec();
        let mut over = false;
        for open in state.open.iter_mut() {
            while let Some(timer) = open.timers.event.pop_until(time) {
                let result =
                    self.firing.ask(open, |window, cx| spec.trigger.on_event_time(timer, window, cx));
                self.firing.apply::<In, S>(result, &spec.contents, key, open)?;
            }
            if <S::Assigner as Windowing>::EVENT_TIME && self.firing.over_at(&open.window) <= time {
                self.firing.ask(open, |window, cx| spec.trigger.clear(window, cx));
                over = true;
            }
        }
        if over {
            state.open.retain(|open| self.firing.over_at(&open.window) > time);
        }
        Ok(())
    }

    /// Fires what is due of a key by the clock.
    fn fire_processing(
        &mut self,
        key: &K,
        state: &mut StateOf<K, In, S>,
        time: Timestamp,
    ) -> Result<(), BoxError> {
        let spec = self.definition.spec();
        for open in state.open.iter_mut() {
            while let Some(timer) = open.timers.processing.pop_until(time) {
                let result =
                    self.firing.ask(open, |window, cx| spec.trigger.on_processing_time(timer, window, cx));
                self.firing.apply::<In, S>(result, &spec.contents, key, open)?;
            }
        }
        Ok(())
    }
}
