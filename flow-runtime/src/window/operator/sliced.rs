//! Sliding windows that share slices: a record is added once, however many windows it is in.
//!
//! The open windows of a key's state are slices here, and `next` is the maximum timestamp of the next window that
//! fires. A window is made of its slices when it fires. Which windows there are follows from the slices, so there is
//! nothing else to remember: this is only so with the default trigger, which fires at the end and when late.

use super::{Core, StateOf, WindowsMut};
use crate::{
    error::BoxError,
    state::{Key, StoredKey, hash},
    time::Timestamp,
    window::{Bounds, Definition, Window, assign::Slices, contents::Contents},
};

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    #[inline(always)]
    pub(super) fn add_to_slice<Q: Key<Stored = K>>(
        &mut self,
        slices: Slices,
        key: &Q,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        if !core.recent.contains(timestamp) {
            core.recent = slices.slice(timestamp);
        }
        let (slice, watermark) = (core.recent, core.firing.watermark.timestamp());
        // A window that ends with the slice or after it is not over while the slice is not.
        if slice.max_timestamp() <= watermark || slices.have_gaps() {
            let Some(last) = slices.last(slice) else { return Ok(None) };
            if core.firing.is_over::<S::Assigner>(&S::Window::spanning(last)) {
                return Ok(Some(core.late(record)));
            }
        }
        let hash = hash(key);
        let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
        let at = state.open(S::Window::spanning(slice));
        let contents = &core.definition.spec().contents;
        let new = match &mut state.open[at].held {
            Some(held) => {
                contents.add(held, record, timestamp)?;
                false
            }
            none => {
                *none = Some(contents.first(record, timestamp)?);
                true
            }
        };
        if slice.max_timestamp() <= watermark {
            core.fire_late(slices, key, state, slice, watermark)?;
        }
        // The windows of a slice are known since its first record.
        if new {
            core.reach(slices, state, hash, slice, watermark);
        }
        Ok(None)
    }
}

impl<K: StoredKey, In: Clone, S: Definition<K, In>> Core<K, In, S> {
    /// The first window after the watermark that contains the slice fires.
    fn reach(
        &mut self,
        slices: Slices,
        state: &mut StateOf<K, In, S>,
        hash: u64,
        slice: Window,
        watermark: Timestamp,
    ) {
        if let Some(first) = slices.first_after(slice, watermark) {
            let first = first.max_timestamp();
            if state.next.is_none_or(|next| first < next) {
                state.next = Some(first);
            }
        }
        let next = self.next_of_slices(slices, state);
        self.index(state, hash, next, None);
    }

    /// Windows that have fired and are not over fire again.
    fn fire_late(
        &mut self,
        slices: Slices,
        key: &K,
        state: &StateOf<K, In, S>,
        slice: Window,
        watermark: Timestamp,
    ) -> Result<(), BoxError> {
        let over = watermark.plus_millis(self.firing.lateness.saturating_neg());
        let mut late = slices.first_after(slice, over);
        while let Some(window) = late.filter(|window| window.max_timestamp() <= watermark) {
            self.firing.counters.late_fired += 1;
            self.fire_slices(key, state, window)?;
            late = slices.first_after(slice, window.max_timestamp());
        }
        Ok(())
    }

    /// When a key has to be looked at next.
    #[inline(always)]
    pub(super) fn next_of_slices(&self, slices: Slices, state: &StateOf<K, In, S>) -> Option<Timestamp> {
        let over = state.open.first().map(|slice| self.slice_over_at(slices, slice.window));
        state.next.into_iter().chain(over).min()
    }

    fn slice_over_at(&self, slices: Slices, slice: S::Window) -> Timestamp {
        match slices.last(slice.span()) {
            Some(last) => self.firing.over_at(&S::Window::spanning(last)),
            None => Timestamp::MIN,
        }
    }

    /// The result of a window, of its slices.
    fn fire_slices(&mut self, key: &K, state: &StateOf<K, In, S>, window: Window) -> Result<(), BoxError> {
        let contents = &self.definition.spec().contents;
        let from = state.open.partition_point(|slice| slice.window.span().start < window.start);
        let mut held = state.open[from..]
            .iter()
            .take_while(|slice| slice.window.span().start < window.end)
            .filter_map(|slice| slice.held.as_ref());
        let Some(first) = held.next() else { return Ok(()) };
        let mut all = first.clone();
        for held in held {
            contents.merge(&mut all, held.clone())?;
        }
        self.firing.emit::<In, S>(contents, key, S::Window::spanning(window), &mut all)
    }

    /// What is due of a key at a time.
    pub(super) fn fire_due_slices(
        &mut self,
        slices: Slices,
        key: &K,
        state: &mut StateOf<K, In, S>,
        time: Timestamp,
    ) -> Result<(), BoxError> {
        while let Some(next) = state.next.filter(|next| *next <= time) {
            let window = slices.window_until(next);
            self.fire_slices(key, state, window)?;
            // The first slice that has another window to come has the earliest.
            let from = state.open.partition_point(|slice| slice.window.span().start < window.start);
            state.next = state.open[from..]
                .iter()
                .find_map(|slice| slices.first_after(slice.window.span(), next))
                .map(|window| window.max_timestamp());
        }
        if state.open.first().is_some_and(|slice| self.slice_over_at(slices, slice.window) <= time) {
            state.open.retain(|slice| self.slice_over_at(slices, slice.window) > time);
        }
        Ok(())
    }
}
