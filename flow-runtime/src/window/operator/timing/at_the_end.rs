//! Windows that fire when the watermark passes their end, and at each late record after that: the default.
//!
//! Nothing is remembered of a window. The windows of a key are in the order of their ends: those of equal size are, those
//! that follow one another, and sessions, which do not overlap. So the next one that fires is found by bisection: the
//! first whose end the watermark has not passed; and what is over is at the front. Without an allowed lateness a window
//! that fires is over, so every open one has still to fire.
//!
//! The index leads to [each](Each) window that follows others without overlap, once for its end, and, with an allowed
//! lateness, once more for when it is over. Sessions grow, and slices are shared: there it leads to the key, for the first
//! of these times, and the key remembers that.
//!
//! With an allowed lateness, a checkpoint does not say which windows have fired; its watermark does. Where there is none, as
//! at-least-once has it for chains that run ahead of their barriers, such a window fires once more after a restore.

use std::marker::PhantomData;

use super::{Core, OfKey, StateOf, Timing, is_news};
use crate::{
    error::BoxError,
    state::{StateValue, StoredKey, Table},
    time::Timestamp,
    timers::Indexed,
    window::{
        Bounds, Definition,
        state::{Few, InPlace, List, Open},
    },
};

/// Windows that fire at their end, with what is remembered of a key.
#[derive(Debug)]
pub struct AtTheEnd<Key>(PhantomData<fn() -> Key>);

/// What is remembered of a key to which one index leads.
pub trait Led: OfKey {
    /// The open windows of the key.
    type Open<W: Bounds, H: StateValue>: List<W, H, ()>;
    /// When the index leads to the key, which is not part of the state; none, when it leads to each of the windows.
    fn indexed(&self) -> Option<&Indexed>;
    /// Whether it always leads to each of the windows.
    const EACH: bool = false;
}

impl OfKey for Indexed {}

impl Led for Indexed {
    // Sessions are rarely of the same length.
    type Open<W: Bounds, H: StateValue> = Few<Open<W, H, ()>>;

    #[inline(always)]
    fn indexed(&self) -> Option<&Indexed> {
        Some(self)
    }
}

/// Nothing, of a key to each of whose windows the index leads. They do not change once they are open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Each;

impl OfKey for Each {}

impl Led for Each {
    type Open<W: Bounds, H: StateValue> = InPlace<W, H>;

    const EACH: bool = true;

    #[inline(always)]
    fn indexed(&self) -> Option<&Indexed> {
        None
    }
}

/// Of a key whose windows share slices.
#[derive(Clone, Debug, Default)]
pub struct Sliced {
    next: Indexed,
    indexed: Indexed,
}

impl OfKey for Sliced {
    #[inline(always)]
    fn next(&self) -> Option<Timestamp> {
        self.next.get()
    }
    #[inline(always)]
    fn set_next(&mut self, next: Option<Timestamp>) {
        self.next.set(next);
    }
}

impl Led for Sliced {
    type Open<W: Bounds, H: StateValue> = InPlace<W, H>;

    #[inline(always)]
    fn indexed(&self) -> Option<&Indexed> {
        Some(&self.indexed)
    }
}

impl<Key: Led> Timing for AtTheEnd<Key> {
    const AT_THE_END: bool = true;

    type TriggerState = ();
    type OfWindow = ();
    type OfKey = Key;
    type Open<W: Bounds, H: StateValue> = Key::Open<W, H>;
    type Lead<W: Bounds> = u64;

    #[inline(always)]
    fn hash<W: Bounds>(hash: &u64) -> u64 {
        *hash
    }

    /// A checkpoint holds the timer that any other trigger would have.
    fn parts<'a>((): &'a (), end: &'a Timestamp) -> (&'a (), &'a [Timestamp], &'a [Timestamp]) {
        (&(), std::slice::from_ref(end), &[])
    }

    fn restored((): (), _: Vec<Timestamp>, _: Vec<Timestamp>) {}

    fn append((): &mut (), (): ()) {}

    #[inline(always)]
    fn index<K, In, S>(core: &mut Core<K, In, S>, state: &StateOf<K, In, S>, at: usize, hash: u64, new: bool)
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        let Some(window) = state.open.window(at) else { return };
        let end = window.max_timestamp();
        let passed = core.firing.watermark.has_passed(end);
        if !core.leads_to_each() {
            let time = if passed { core.firing.over_at(&window) } else { end };
            core.lead(state, hash, Some(time));
        } else if new && passed {
            core.over.push(core.firing.over_at(&window), hash);
        } else if new {
            core.event.push(end, hash);
        }
    }

    fn index_all<K, In, S>(core: &mut Core<K, In, S>, state: &StateOf<K, In, S>, hash: u64)
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        if !core.leads_to_each() {
            let next = core.next(state, core.firing.watermark.timestamp());
            core.lead(state, hash, next);
            return;
        }
        for window in state.open.windows() {
            // A window that is there without an allowed lateness has not fired.
            let fired = core.firing.lateness > 0 && core.firing.watermark.has_passed(window.max_timestamp());
            match fired {
                true => core.over.push(core.firing.over_at(&window), hash),
                false => core.event.push(window.max_timestamp(), hash),
            }
        }
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
        if core.leads_to_each() {
            return core.window_due(table, time, hash);
        }
        let led_here = |state: &StateOf<K, In, S>| {
            state.timing.indexed().is_some_and(|indexed| indexed.get() == Some(time))
        };
        let Some(mut found) = table.find_entry(hash, led_here) else {
            // It led here earlier already.
            return Ok(());
        };
        let state = found.value();
        let fired = time.plus_millis(-1);
        if state.open.len() == 1
            && core.slices.is_none()
            && let Some(window) = state.open.first()
            && core.firing.over_at(&window) <= time
        {
            let fires = core.firing.lateness == 0 || window.max_timestamp() > fired;
            return found.remove_with(|key, state| match state.open.held_mut(0) {
                Some(held) if fires => {
                    core.firing.emit::<In, S>(&core.definition.spec().contents, key, window, held)
                }
                _ => Ok(()),
            });
        }
        let next = core.next(state, fired);
        if let Some(indexed) = state.timing.indexed() {
            indexed.set(None);
        }
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
                core.drop_over(state, time);
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

    fn over<K, In, S>(
        core: &mut Core<K, In, S>,
        table: &mut Table<K, StateOf<K, In, S>>,
        time: Timestamp,
        hash: u64,
    ) where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        let is_over = |state: &StateOf<K, In, S>| {
            state.open.first().is_some_and(|window| core.firing.over_at(&window) <= time)
        };
        let Some(mut found) = table.find_entry(hash, is_over) else { return };
        let (_, state) = found.change();
        core.drop_over(state, time);
        if state.open.is_empty() {
            found.remove();
        }
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
    /// Whether the index leads to each window, and not to the key. Sliding windows may follow one another, too.
    #[inline(always)]
    fn leads_to_each(&self) -> bool {
        Key::EACH || self.tiles
    }

    /// Sees to it that the index leads to a key not later than at this time.
    #[inline(always)]
    fn lead(&mut self, state: &StateOf<K, In, S>, hash: u64, time: Option<Timestamp>) {
        if let (Some(time), Some(indexed)) = (time, state.timing.indexed())
            && is_news(indexed, time)
        {
            self.event.push(time, hash);
        }
    }

    /// When a key has to be looked at next, when all that ends at `fired` or before has fired.
    fn next(&self, state: &StateOf<K, In, S>, fired: Timestamp) -> Option<Timestamp> {
        if let Some(slices) = self.slices {
            return self.next_of_slices(slices, state);
        }
        let first = state.open.first()?;
        if self.firing.lateness == 0 {
            return Some(first.max_timestamp());
        }
        let open = state.open.partition_point(|window| window.max_timestamp() <= fired);
        let next = state.open.window(open).map(|window| window.max_timestamp());
        let over = self.firing.over_at(&first);
        Some(next.map_or(over, |next| next.min(over)))
    }

    /// The index leads to a window that ends now.
    #[inline]
    fn window_due(
        &mut self,
        table: &mut Table<K, StateOf<K, In, S>>,
        time: Timestamp,
        hash: u64,
    ) -> Result<(), BoxError> {
        let contents = &self.definition.spec().contents;
        if self.firing.lateness > 0 {
            let Some(mut found) = table.find_entry(hash, |state| ends_at::<K, In, S>(state, time).is_some())
            else {
                return Ok(());
            };
            let Some(at) = ends_at::<K, In, S>(found.value(), time) else { return Ok(()) };
            let (key, state) = found.change();
            if let (Some(window), Some(held)) = (state.open.window(at), state.open.held_mut(at)) {
                self.firing.emit::<In, S>(contents, key, window, held)?;
                self.over.push(self.firing.over_at(&window), hash);
            }
            return Ok(());
        }
        let ends = |state: &StateOf<K, In, S>| {
            state.open.first().is_some_and(|window| window.max_timestamp() <= time)
        };
        let Some(mut found) = table.find_entry(hash, ends) else { return Ok(()) };
        let Some(window) = found.value().open.first() else { return Ok(()) };
        if found.value().open.len() == 1 {
            return found.remove_with(|key, state| match state.open.held_mut(0) {
                Some(held) => self.firing.emit::<In, S>(contents, key, window, held),
                None => Ok(()),
            });
        }
        let (key, state) = found.change();
        if let Some(mut held) = state.open.remove(0).and_then(|open| open.held) {
            self.firing.emit::<In, S>(contents, key, window, &mut held)?;
        }
        Ok(())
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
            _ => state.open.partition_point(|window| window.max_timestamp() < time),
        };
        while let Some(window) = state.open.window(at).filter(|window| window.max_timestamp() <= time) {
            if let Some(held) = state.open.held_mut(at) {
                self.firing.emit::<In, S>(contents, key, window, held)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// Windows that are over vanish.
    fn drop_over(&self, state: &mut StateOf<K, In, S>, time: Timestamp) {
        while state.open.first().is_some_and(|window| self.firing.over_at(&window) <= time) {
            state.open.remove(0);
        }
    }
}

/// The window with this last millisecond.
fn ends_at<K, In, S: Definition<K, In>>(state: &StateOf<K, In, S>, time: Timestamp) -> Option<usize> {
    let at = state.open.partition_point(|window| window.max_timestamp() < time);
    state.open.window(at).filter(|window| window.max_timestamp() == time).map(|_| at)
}
