//! Windows that fire when a trigger says so, of which each has a state and timers.
//!
//! The indices lead to single windows of a key, each about once, for the first of its timers. A session that has grown or
//! become one with others is found by what it covers.

use std::marker::PhantomData;

use serde::{Serialize, de::DeserializeOwned};

use super::{Core, StateOf, Timing, is_news};
use crate::{
    error::BoxError,
    state::{StateValue, StoredKey, Table},
    time::Timestamp,
    timers::{Indexed, Timers, Times},
    window::{
        Bounds, Definition, Windowing,
        operator::timing::Triggering,
        state::{Few, Open},
    },
};

/// Windows that fire when a trigger with such a state says so.
#[derive(Debug)]
pub struct ByTrigger<T>(PhantomData<fn() -> T>);

/// What is remembered of a window: the state of its trigger, and its timers.
#[derive(Clone, Debug, Default)]
pub struct Timed<T> {
    pub(in crate::window) trigger: T,
    pub(in crate::window) timers: Timers,
    /// When the indices lead here. Not part of the state.
    event: Indexed,
    processing: Indexed,
}

impl<T> Timing for ByTrigger<T>
where
    T: Serialize + DeserializeOwned + Clone + Send + Default + 'static,
{
    const AT_THE_END: bool = false;

    type TriggerState = T;
    type OfWindow = Timed<T>;
    type OfKey = ();
    type Open<W: Bounds, H: StateValue> = Few<Open<W, H, Timed<T>>>;
    type Lead<W: Bounds> = (u64, W);

    fn hash<W: Bounds>((hash, _): &(u64, W)) -> u64 {
        *hash
    }

    fn parts<'a>(of: &'a Timed<T>, _: &'a Timestamp) -> (&'a T, &'a [Timestamp], &'a [Timestamp]) {
        (&of.trigger, of.timers.event.as_slice(), of.timers.processing.as_slice())
    }

    fn restored(trigger: T, event: Vec<Timestamp>, processing: Vec<Timestamp>) -> Timed<T> {
        let timers = Timers { event: Times::from(event), processing: Times::from(processing) };
        Timed { trigger, timers, ..Timed::default() }
    }

    fn append(of: &mut Timed<T>, other: Timed<T>) -> T {
        of.timers.event.append(other.timers.event);
        of.timers.processing.append(other.timers.processing);
        // What leads to the first of them leads to the one that they are now.
        of.event.set(of.event.get().into_iter().chain(other.event.get()).min());
        of.processing.set(of.processing.get().into_iter().chain(other.processing.get()).min());
        other.trigger
    }

    #[inline(always)]
    fn index<K, In, S>(core: &mut Core<K, In, S>, state: &StateOf<K, In, S>, at: usize, hash: u64, _: bool)
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        let open = &state.open[at];
        if let Some(event) = core.next_event(open)
            && is_news(&open.timing.event, event)
        {
            core.event.push(event, (hash, open.window));
        }
        if let Some(processing) = open.timing.timers.processing.first()
            && is_news(&open.timing.processing, processing)
        {
            core.processing.push(processing, (hash, open.window));
        }
    }

    fn index_all<K, In, S>(core: &mut Core<K, In, S>, state: &StateOf<K, In, S>, hash: u64)
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        (0..state.open.len()).for_each(|at| Self::index(core, state, at, hash, true));
    }

    fn due<K, In, S>(
        core: &mut Core<K, In, S>,
        table: &mut Table<K, StateOf<K, In, S>>,
        time: Timestamp,
        (hash, window): (u64, S::Window),
    ) -> Result<(), BoxError>
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        let led_here = |open: &Open<_, _, Timed<T>>| open.timing.event.get() == Some(time);
        let place = |state: &StateOf<K, In, S>| place::<K, In, S, T>(state, &window, led_here);
        let Some(mut found) = table.find_entry(hash, |state| place(state).is_some()) else {
            // It led here earlier already.
            return Ok(());
        };
        let Some(at) = place(found.value()) else { return Ok(()) };
        let open = &found.value().open[at];
        open.timing.event.set(None);
        if core.next_event(open).is_none_or(|next| next > time) {
            Self::index(core, found.value(), at, hash, false);
            return Ok(());
        }
        let (key, state) = found.change();
        let (spec, moment) = (core.definition.spec(), core.firing.moment());
        while let Some(timer) = state.open[at].timing.timers.event.pop_until(time) {
            let open = &mut state.open[at];
            let result = spec.trigger.on_event_time(timer, &open.window, &mut open.timing, moment);
            core.firing.apply::<In, S>(result, &spec.contents, key, &mut state.open, at)?;
        }
        let open = &mut state.open[at];
        if <S::Assigner as Windowing>::EVENT_TIME && core.firing.over_at(&open.window) <= time {
            spec.trigger.clear(&open.window, &mut open.timing, moment);
            state.open.remove(at);
            if state.open.is_empty() {
                found.remove();
            }
        } else {
            Self::index(core, state, at, hash, false);
        }
        Ok(())
    }

    fn over<K, In, S>(
        _: &mut Core<K, In, S>,
        _: &mut Table<K, StateOf<K, In, S>>,
        _: Timestamp,
        _: (u64, S::Window),
    ) where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
    }

    fn due_by_clock<K, In, S>(
        core: &mut Core<K, In, S>,
        table: &mut Table<K, StateOf<K, In, S>>,
        time: Timestamp,
        (hash, window): (u64, S::Window),
    ) -> Result<(), BoxError>
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>,
    {
        let led_here = |open: &Open<_, _, Timed<T>>| open.timing.processing.get() == Some(time);
        let place = |state: &StateOf<K, In, S>| place::<K, In, S, T>(state, &window, led_here);
        let Some(mut found) = table.find_entry(hash, |state| place(state).is_some()) else {
            return Ok(());
        };
        let Some(at) = place(found.value()) else { return Ok(()) };
        let open = &found.value().open[at];
        open.timing.processing.set(None);
        if open.timing.timers.processing.first().is_none_or(|next| next > time) {
            Self::index(core, found.value(), at, hash, false);
            return Ok(());
        }
        let (key, state) = found.change();
        let (spec, moment) = (core.definition.spec(), core.firing.moment());
        while let Some(timer) = state.open[at].timing.timers.processing.pop_until(time) {
            let open = &mut state.open[at];
            let result = spec.trigger.on_processing_time(timer, &open.window, &mut open.timing, moment);
            core.firing.apply::<In, S>(result, &spec.contents, key, &mut state.open, at)?;
        }
        Self::index(core, state, at, hash, false);
        Ok(())
    }
}

/// The place of the window to which an index leads, which was `window` then and may be a longer session now.
fn place<K, In, S, T>(
    state: &StateOf<K, In, S>,
    window: &S::Window,
    led_here: impl Fn(&Open<S::Window, S::Held, Timed<T>>) -> bool,
) -> Option<usize>
where
    S: Definition<K, In, Timing = ByTrigger<T>>,
    T: Serialize + DeserializeOwned + Clone + Send + Default + 'static,
{
    if let Ok(at) = state.find(window)
        && led_here(&state.open[at])
    {
        return Some(at);
    }
    if !<S::Assigner as Windowing>::MERGING {
        return None;
    }
    let start = window.span().start;
    let places = 0..Few::partition_point(&state.open, |open| open.window.span().start <= start);
    // Sessions that hold something do not overlap, so before one that ends too early there is nothing to be found.
    let near = places.rev().take_while(|at| {
        let open = &state.open[*at];
        open.held.is_none() || open.window.span().end >= start
    });
    let covers = |open: &Open<S::Window, S::Held, Timed<T>>| open.window.span().end >= window.span().end;
    near.into_iter().find(|at| covers(&state.open[*at]) && led_here(&state.open[*at]))
}

impl<K, In, S, T> Core<K, In, S>
where
    K: StoredKey,
    S: Definition<K, In, Timing = ByTrigger<T>>,
    ByTrigger<T>: Timing<OfWindow = Timed<T>>,
{
    /// When a window has to be looked at by event time.
    #[inline(always)]
    fn next_event(&self, open: &Open<S::Window, S::Held, Timed<T>>) -> Option<Timestamp> {
        let over = <S::Assigner as Windowing>::EVENT_TIME.then(|| self.firing.over_at(&open.window));
        open.timing.timers.event.first().into_iter().chain(over).min()
    }
}
