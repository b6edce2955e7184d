//! Windows that hold what they hold each for itself.

use super::{Core, StateOf, WindowsMut};
use crate::{
    error::BoxError,
    state::{Key, StoredKey},
    time::Timestamp,
    window::{
        Assigner, Bounds, Definition, Windowing,
        contents::Contents,
        state::{List, Open},
        timing::{Timing, Triggering},
        trigger::TriggerResult,
    },
};

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    #[inline(always)]
    pub(super) fn add_to_windows<Q: Key<Stored = K>>(
        &mut self,
        hash: u64,
        key: &Q,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        if core.tiles
            && let Some(recent) = core.recent(timestamp)
        {
            let window = S::Window::spanning(recent);
            let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
            // With the default trigger nothing happens before the end of a window, except at its first record.
            if let Some(held) = state.open.near(&window) {
                core.definition.spec().contents.add(held, record, timestamp)?;
            } else {
                core.put(key, state, hash, window, timestamp, record)?;
            }
            return Ok(None);
        }
        // Before the first window is opened, so that the index leads to each once.
        core.index_all(table);
        let mut assigned = core.definition.spec().assigner.assign(&record, timestamp);
        let Some(mut window) = core.next_in_time(&mut assigned) else {
            return Ok(core.not_in_time(timestamp, record));
        };
        let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
        // The last window takes the record itself.
        while let Some(next) = core.next_in_time(&mut assigned) {
            core.put(key, state, hash, window, timestamp, record.clone())?;
            window = next;
        }
        if core.tiles {
            core.set_recent(window.span());
        }
        let result = core.put(key, state, hash, window, timestamp, record)?;
        if !<S::Assigner as Windowing>::EVENT_TIME && result.purges() {
            self.forget(hash);
        }
        Ok(None)
    }

    /// A global window is never over: the key goes when there is nothing to remember of it.
    #[cold]
    fn forget(&mut self, hash: u64) {
        let says_nothing = |state: &StateOf<K, In, S>, at| {
            state.open.held(at).is_none()
                && state.open.of(at).is_none_or(<S::Trigger as Triggering<In, S::Window>>::says_nothing)
        };
        self.table.remove_found(hash, |state| (0..state.open.len()).all(|at| says_nothing(state, at)));
    }
}

impl<K: StoredKey, In, S: Definition<K, In>> Core<K, In, S> {
    /// The next of the windows that is not over.
    #[inline(always)]
    fn next_in_time(&self, assigned: &mut impl Iterator<Item = S::Window>) -> Option<S::Window> {
        assigned.find(|window| !self.firing.is_over::<S::Assigner>(window))
    }

    /// A record that no open window takes: it is late, unless it is in a gap between windows.
    #[cold]
    fn not_in_time(&mut self, timestamp: Timestamp, record: In) -> Option<In> {
        self.definition.spec().assigner.assign(&record, timestamp).next()?;
        Some(self.late(record))
    }

    /// A record that was late for all of its windows.
    pub(super) fn late(&mut self, record: In) -> In {
        self.firing.counters.late_dropped += 1;
        record
    }

    /// Puts a record into a window of the key, and asks the trigger.
    #[inline]
    pub(super) fn put(
        &mut self,
        key: &K,
        state: &mut StateOf<K, In, S>,
        hash: u64,
        window: S::Window,
        timestamp: Timestamp,
        record: In,
    ) -> Result<TriggerResult, BoxError> {
        let passed = self.firing.watermark.has_passed(window.max_timestamp());
        // With the default trigger nothing happens before the end of a window.
        let silent = S::Timing::AT_THE_END && !passed;
        let at = match state.find(&window) {
            Ok(at) => at,
            Err(at) => return self.open(key, state, hash, at, window, timestamp, record, silent),
        };
        let spec = self.definition.spec();
        // The timer was set with the first record. A session may have become longer.
        if silent
            && !<S::Assigner as Windowing>::MERGING
            && let Some(held) = state.open.held_mut(at)
        {
            spec.contents.add(held, record, timestamp)?;
            return Ok(TriggerResult::Continue);
        }
        let moment = self.firing.moment();
        let asked =
            state.open.with(at, |window, of| spec.trigger.on_element(&record, timestamp, window, of, moment));
        match state.open.held_mut(at) {
            Some(held) => spec.contents.add(held, record, timestamp)?,
            None => state.open.set_held(at, Some(spec.contents.first(record, timestamp)?)),
        }
        let result = asked.unwrap_or(TriggerResult::Continue);
        self.decided(result, key, state, at, passed)?;
        S::Timing::index(self, state, at, hash, false);
        Ok(result)
    }

    /// Opens a window with its first record.
    #[allow(clippy::too_many_arguments, reason = "the rest of `put`, apart from it for its size")]
    fn open(
        &mut self,
        key: &K,
        state: &mut StateOf<K, In, S>,
        hash: u64,
        at: usize,
        window: S::Window,
        timestamp: Timestamp,
        record: In,
        silent: bool,
    ) -> Result<TriggerResult, BoxError> {
        let (spec, moment) = (self.definition.spec(), self.firing.moment());
        let mut timing = Default::default();
        let result = match silent {
            true => TriggerResult::Continue,
            false => spec.trigger.on_element(&record, timestamp, &window, &mut timing, moment),
        };
        let held = Some(spec.contents.first(record, timestamp)?);
        state.open.insert(at, Open { window, held, timing });
        self.decided(result, key, state, at, moment.watermark.has_passed(window.max_timestamp()))?;
        S::Timing::index(self, state, at, hash, true);
        Ok(result)
    }

    /// Does what the trigger decided at a record.
    #[inline(always)]
    fn decided(
        &mut self,
        result: TriggerResult,
        key: &K,
        state: &mut StateOf<K, In, S>,
        at: usize,
        passed: bool,
    ) -> Result<(), BoxError> {
        if result == TriggerResult::Continue {
            return Ok(());
        }
        if result.fires() && passed {
            self.firing.counters.late_fired += 1;
        }
        self.firing.apply::<In, S>(result, &self.definition.spec().contents, key, &mut state.open, at)
    }
}
