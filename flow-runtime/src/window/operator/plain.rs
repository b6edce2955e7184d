//! Windows that hold what they hold each for itself.

use super::{Core, StateOf, WindowsMut};
use crate::{
    error::BoxError,
    state::{Key, StoredKey, hash},
    time::Timestamp,
    window::{
        Assigner, Bounds, Definition, Windowing,
        contents::Contents,
        state::{Few, Open},
        timing::{Timing, Triggering},
        trigger::TriggerResult,
    },
};

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    #[inline(always)]
    pub(super) fn add_to_windows<Q: Key<Stored = K>>(
        &mut self,
        key: &Q,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        if core.tiles && core.recent.contains(timestamp) {
            let window = S::Window::spanning(core.recent);
            let hash = hash(key);
            let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
            // With the default trigger nothing happens before the end of a window, except at its first record.
            if let Some(held) = state.newest(window) {
                core.definition.spec().contents.add(held, record, timestamp)?;
            } else {
                core.put(key, state, hash, window, timestamp, record)?;
            }
            return Ok(None);
        }
        let mut assigned = core.definition.spec().assigner.assign(&record, timestamp);
        let Some(mut window) = core.next_in_time(&mut assigned) else {
            return Ok(core.not_in_time(timestamp, record));
        };
        let hash = hash(key);
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
        let says_nothing = |open: &Open<S::Window, S::Held, S::Timing>| {
            open.held.is_none() && <S::Trigger as Triggering<In, S::Window>>::says_nothing(&open.timing)
        };
        self.table.remove_found(hash, |state| state.open.iter().all(says_nothing));
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
        let spec = self.definition.spec();
        let passed = self.firing.watermark.has_passed(window.max_timestamp());
        if S::Timing::AT_THE_END && !passed && state.open.is_empty() {
            // The first record of a key, or of its next window when all others are over.
            let held = Some(spec.contents.first(record, timestamp)?);
            state.open = Few::One(Open { window, held, timing: Default::default() });
            S::Timing::index(self, state, 0, hash);
            return Ok(TriggerResult::Continue);
        }
        let at = state.open(window);
        let open = &mut state.open[at];
        // With the default trigger nothing happens before the end of a window, and its timer is set with its first
        // record. A session may have become longer.
        if S::Timing::AT_THE_END
            && !<S::Assigner as Windowing>::MERGING
            && !passed
            && let Some(held) = &mut open.held
        {
            spec.contents.add(held, record, timestamp)?;
            return Ok(TriggerResult::Continue);
        }
        let moment = self.firing.moment();
        let result = spec.trigger.on_element(&record, timestamp, &open.window, &mut open.timing, moment);
        match &mut open.held {
            Some(held) => spec.contents.add(held, record, timestamp)?,
            none => *none = Some(spec.contents.first(record, timestamp)?),
        }
        if result != TriggerResult::Continue {
            if result.fires() && passed {
                self.firing.counters.late_fired += 1;
            }
            self.firing.apply::<In, S>(result, &spec.contents, key, open)?;
        }
        S::Timing::index(self, state, at, hash);
        Ok(result)
    }
}
