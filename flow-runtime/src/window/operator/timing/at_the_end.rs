//! Windows that fire when the watermark passes their end, and at each late record after that: the default.
//!
//! Nothing is remembered of a window. The windows of a key are in the order of their ends: those of equal size are, those
//! that follow one another, and sessions, which do not overlap. So the next one that fires is found by bisection: the
//! first whose end the watermark has not passed; and what is over is at the front. Without an allowed lateness a window
//! that fires is over, so every open one has still to fire.
//!
//! With an allowed lateness, a checkpoint does not say which windows have fired; its watermark does. Where there is none, as
//! at-least-once has it for chains that run ahead of their barriers, such a window fires once more after a restore.

use std::marker::PhantomData;

use super::{Core, OfKey, StateOf, Timing, is_news};
use crate::{
    error::BoxError,
    state::{StoredKey, Table},
    time::Timestamp,
    timers::Indexed,
    window::{
        Bounds, Definition,
        state::{Few, Open},
    },
};

/// Windows that fire at their end, with what is remembered of a key.
#[derive(Debug)]
pub struct AtTheEnd<Key>(PhantomData<fn() -> Key>);

/// What is remembered of a key to which one index leads.
pub trait Led: OfKey {
    /// When the index leads there. Not part of the state.
    fn indexed(&self) -> &Indexed;
}

impl OfKey for Indexed {}

impl Led for Indexed {
    #[inline(always)]
    fn indexed(&self) -> &Indexed {
        self
    }
}

/// Of a key whose windows share slices.
#[derive(Clone, Debug, Default)]
pub struct Sliced {
    next: Option<Timestamp>,
    indexed: Indexed,
}

impl OfKey for Sliced {
    #[inline(always)]
    fn next(&self) -> Option<Timestamp> {
        self.next
    }
    #[inline(always)]
    fn set_next(&mut self, next: Option<Timestamp>) {
        self.next = next;
    }
}

impl Led for Sliced {
    #[inline(always)]
    fn indexed(&self) -> &Indexed {
        &self.indexed
    }
}

impl<Key: Led> Timing for AtTheEnd<Key> {
    const AT_THE_END: bool = true;

    type TriggerState = ();
    type OfWindow = ();
    type OfKey = Key;
    type Lead<W: Bounds> = u64;

    /// A checkpoint holds the timer that any other trigger would have.
    fn parts<'a>((): &'a (), end: &'a Timestamp) -> (&'a (), &'a [Timestamp], &'a [Timestamp]) {
        (&(), std::slice::from_ref(end), &[])
    }

    fn restored((): (), _: Vec<Timestamp>, _: Vec<Timestamp>) {}

    fn append((): &mut (), (): ()) {}

    #[inline(always)]
    fn index<K, In, S>(core: &mut Core<K, In, S>, state: &StateOf<K, In, S>, at: usize, hash: u64)
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        let window = &state.open[at].window;
        let end = window.max_timestamp();
        let time = if core.firing.watermark.has_passed(end) { core.firing.over_at(window) } else { end };
        core.lead(state, hash, Some(time));
    }

    fn index_all<K, In, S>(core: &mut Core<K, In, S>, state: &StateOf<K, In, S>, hash: u64)
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        let next = core.next(state, core.firing.watermark.timestamp());
        core.lead(state, hash, next);
    }

    #[inline]
    fn due<K, In, S>(
        core: &mut Core<K, In, S>,
        table: &mut Table<K, StateOf<K, In, S>>,
        time: Timestamp,
        hash: u64,
    ) -> Result<(), BoxError>
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        let led_here = |state: &StateOf<K, In, S>| state.timing.indexed().get() == Some(time);
        let Some(mut found) = table.find_entry(hash, led_here) else {
            // It led here earlier already.
            return Ok(());
        };
        let state = found.value();
        let fired = time.plus_millis(-1);
        if let Few::One(open) = &state.open
            && core.slices.is_none()
            && core.firing.over_at(&open.window) <= time
        {
            let fires = core.firing.lateness == 0 || open.window.max_timestamp() > fired;
            return found.remove_with(|key, state| match &mut state.open {
                Few::One(Open { window, held: Some(held), .. }) if fires => {
                    core.firing.emit::<In, S>(&core.definition.spec().contents, key, *window, held)
                }
                _ => Ok(()),
            });
        }
        let next = core.next(state, fired);
        state.timing.indexed().set(None);
        if next.is_some_and(|next| next > time) {
            // A session has grown, for example.
            core.lead(state, hash, next);
            return Ok(());
        }
        let (key, state) = found.change();
        match core.slices {
            Some(slices) => core.fire_due_slices(slices, key, state, time)?,
            None => {
                core.fire_whole(key, state, time)?;
                while state.open.first().is_some_and(|open| core.firing.over_at(&open.window) <= time) {
                    state.open.remove(0);
                }
            }
        }
        if state.open.is_empty() {
            found.remove();
        } else {
            let next = core.next(state, time);
            core.lead(state, hash, next);
        }
        Ok(())
    }

    fn due_by_clock<K, In, S>(
        _: &mut Core<K, In, S>,
        _: &mut Table<K, StateOf<K, In, S>>,
        _: Timestamp,
        _: u64,
    ) -> Result<(), BoxError>
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        Ok(())
    }
}

impl<K: StoredKey, In, S: Definition<K, In, Timing = AtTheEnd<Key>>, Key: Led> Core<K, In, S> {
    /// Sees to it that the index leads to a key not later than at this time.
    #[inline(always)]
    fn lead(&mut self, state: &StateOf<K, In, S>, hash: u64, time: Option<Timestamp>) {
        if let Some(time) = time
            && is_news(state.timing.indexed(), time)
        {
            self.event.push(time, hash);
        }
    }

    /// When a key has to be looked at next, when all that ends at `fired` or before has fired.
    fn next(&self, state: &StateOf<K, In, S>, fired: Timestamp) -> Option<Timestamp> {
        if let Some(slices) = self.slices {
            return self.next_of_slices(slices, state);
        }
        let first = &state.open.first()?.window;
        if self.firing.lateness == 0 {
            return Some(first.max_timestamp());
        }
        let open = state.open.partition_point(|open| open.window.max_timestamp() <= fired);
        let next = state.open.get(open).map(|open| open.window.max_timestamp());
        let over = self.firing.over_at(first);
        Some(next.map_or(over, |next| next.min(over)))
    }

    /// The windows fire that end now, when all have fired that ended before.
    #[inline]
    fn fire_whole(
        &mut self,
        key: &K,
        state: &mut StateOf<K, In, S>,
        time: Timestamp,
    ) -> Result<(), BoxError> {
        let contents = &self.definition.spec().contents;
        let mut at = match self.firing.lateness {
            0 => 0,
            _ => state.open.partition_point(|open| open.window.max_timestamp() < time),
        };
        while state.open.get(at).is_some_and(|open| open.window.max_timestamp() <= time) {
            let open = &mut state.open[at];
            if let Some(held) = &mut open.held {
                self.firing.emit::<In, S>(contents, key, open.window, held)?;
            }
            at += 1;
        }
        Ok(())
    }
}
