//! Sliding windows that share slices: a record is added once, however many windows it is in.
//!
//! The open windows of a key's state are slices here, and `next` is the maximum timestamp of the next window that
//! fires. A window is made of its slices when it fires. Which windows there are follows from the slices, so there is
//! nothing else to remember: this is only so with the default trigger, which fires at the end and when late.

use super::{Core, StateOf, WindowsMut};
use crate::{
    error::BoxError,
    state::{Key, StoredKey},
    time::Timestamp,
    window::{
        Bounds, Definition, Window,
        assign::Slices,
        contents::Contents,
        state::{List, Open},
        timing::{OfKey, Timing},
    },
};

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    #[inline(always)]
    pub(super) fn add_to_slice<Q: Key<Stored = K>>(
        &mut self,
        slices: Slices,
        hash: u64,
        key: &Q,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        if let Some(recent) = core.recent(timestamp) {
            let slice = S::Window::spanning(recent);
            let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
            // Nearly all records come to a slice that is there.
            if let Some(held) = state.open.near(&slice) {
                core.definition.spec().contents.add(held, record, timestamp)?;
                return Ok(None);
            }
            core.put_into_slice(slices, key, state, hash, recent, timestamp, record)?;
            return Ok(None);
        }
        let slice = slices.slice(timestamp);
        // A window that ends with the slice or after it is not over while the slice is not.
        if core.firing.watermark.has_passed(slice.max_timestamp()) || slices.have_gaps() {
            let Some(last) = slices.last(slice) else { return Ok(None) };
            if core.firing.is_over::<S::Assigner>(&S::Window::spanning(last)) {
                return Ok(Some(core.late(record)));
            }
        }
        core.set_recent(slice);
        let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
        core.put_into_slice(slices, key, state, hash, slice, timestamp, record)?;
        Ok(None)
    }
}

impl<K: StoredKey, In, S: Definition<K, In>> Core<K, In, S> {
    /// Puts a record into a slice that may be new, or late.
    #[inline(never)]
    #[allow(
        clippy::too_many_arguments,
        reason = "what the loop has in registers, apart from it for its size"
    )]
    fn put_into_slice(
        &mut self,
        slices: Slices,
        key: &K,
        state: &mut StateOf<K, In, S>,
        hash: u64,
        slice: Window,
        timestamp: Timestamp,
        record: In,
    ) -> Result<(), BoxError> {
        let watermark = self.firing.watermark.timestamp();
        let window = S::Window::spanning(slice);
        let contents = &self.definition.spec().contents;
        let found = state.find(&window);
        match found {
            Ok(at) => {
                if let Some(held) = state.open.held_mut(at) {
                    contents.add(held, record, timestamp)?;
                }
            }
            Err(at) => {
                let held = Some(contents.first(record, timestamp)?);
                state.open.insert(at, Open { window, held, timing: Default::default() });
            }
        }
        if slice.max_timestamp() <= watermark {
            self.fire_late(slices, key, state, slice, watermark)?;
        }
        // The windows of a slice are known since its first record: the first one after the watermark fires.
        if found.is_err() {
            if let Some(first) = slices.first_after(slice, watermark) {
                let first = first.max_timestamp();
                if state.timing.next().is_none_or(|next| first < next) {
                    state.timing.set_next(Some(first));
                }
            }
            S::Timing::index_all(self, state, hash);
        }
        Ok(())
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
        let over = state.open.first().map(|slice| self.slice_over_at(slices, slice));
        state.timing.next().into_iter().chain(over).min()
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
        let from = state.open.partition_point(|slice| slice.span().start < window.start);
        let mut held = state
            .open
            .holding(from)
            .take_while(|(slice, _)| slice.span().start < window.end)
            .map(|(_, held)| held);
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
        while let Some(next) = state.timing.next().filter(|next| *next <= time) {
            let window = slices.window_until(next);
            self.fire_slices(key, state, window)?;
            // The first slice that has another window to come has the earliest.
            let from = state.open.partition_point(|slice| slice.span().start < window.start);
            let mut left = state.open.holding(from);
            let next = left.find_map(|(slice, _)| slices.first_after(slice.span(), next));
            state.timing.set_next(next.map(|window| window.max_timestamp()));
        }
        while state.open.first().is_some_and(|slice| self.slice_over_at(slices, slice) <= time) {
            state.open.remove(0);
        }
        Ok(())
    }
}
