//! Process functions over keyed state, and their timers.

use std::{
    cell::{RefCell, RefMut},
    fmt,
    rc::Rc,
    vec::Drain,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};

use super::{
    KeyedProcessFunction, State, TimeDomain, Timer,
    context::{Context, Outputs},
    state::{bytes_of, state_of, ttl::set_now},
};
use crate::{
    chain::Skipped,
    error::BoxError,
    join::keys::Owned,
    state::{Keyed, StoredKey, Table, hash},
    time::{Clock, Timestamp, Watermark},
    timers::{Index, Indexed, Timers, Times},
    window::{Turn, lent::WindowPort},
};

/// Records that are held at a time.
const HELD: usize = 1024;

/// Timers that a timer may set for a time that is reached already, one after the other, before that is taken for an
/// endless loop.
const AT_ONCE: u64 = 100_000_000;

/// What is kept of a key: its state and its timers.
#[derive(Debug)]
pub(crate) struct KeyState<S> {
    pub(super) state: S,
    pub(super) timers: Timers,
    /// When the indices of timers lead here. Not part of the state.
    event: Indexed,
    processing: Indexed,
}

impl<S: State> Default for KeyState<S> {
    #[inline]
    fn default() -> Self {
        KeyState {
            state: S::empty(None),
            timers: Timers::default(),
            event: Indexed::default(),
            processing: Indexed::default(),
        }
    }
}

impl<S: State> Clone for KeyState<S> {
    fn clone(&self) -> Self {
        KeyState { state: self.state.copy(), timers: self.timers.clone(), ..KeyState::default() }
    }
}

impl<S: State> KeyState<S> {
    /// Whether there is nothing to remember.
    #[inline(always)]
    pub(super) fn is_nothing(&self) -> bool {
        self.timers.is_empty() && self.state.holds_nothing()
    }

    /// When it has to be looked at by the clock.
    #[inline(always)]
    fn next_processing(&self) -> Option<Timestamp> {
        let timer = self.timers.processing.first();
        if !S::EXPIRES {
            return timer;
        }
        match (timer, self.state.ends()) {
            (Some(timer), Some(end)) => Some(timer.min(end)),
            (timer, end) => timer.or(end),
        }
    }
}

impl<S: State> Serialize for KeyState<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let state = bytes_of(&self.state).map_err(Z::Error::custom)?;
        (state, self.timers.event.as_slice(), self.timers.processing.as_slice()).serialize(serializer)
    }
}

impl<'de, S: State> Deserialize<'de> for KeyState<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (state, event, processing): (super::state::Bytes<'de>, Vec<Timestamp>, Vec<Timestamp>) =
            Deserialize::deserialize(deserializer)?;
        let timers = Timers { event: Times::from(event), processing: Times::from(processing) };
        let state = state_of(&state.0).map_err(D::Error::custom)?;
        Ok(KeyState { state, timers, ..KeyState::default() })
    }
}

/// What timers make due, whatever else the function takes.
pub(super) struct Core<Out, Side> {
    pub(super) outputs: Outputs<Out, Side>,
    pub(super) watermark: Watermark,
    pub(super) clock: Clock,
    pub(super) timed: bool,
    pub(super) skipped: Option<Skipped>,
    event: Index,
    processing: Index,
    /// Whether the indices know all of the state: not at first, since it may have been restored.
    indexed: bool,
    /// How many timers in a row were set by timers for a time that was reached already.
    at_once: u64,
}

impl<Out, Side> Core<Out, Side> {
    pub(super) fn new(clock: Clock, timed: bool, skipped: Option<Skipped>) -> Self {
        Core {
            outputs: Outputs::new(),
            watermark: Watermark::MIN,
            clock,
            timed,
            skipped,
            event: Index::default(),
            processing: Index::default(),
            indexed: false,
            at_once: 0,
        }
    }

    /// The time of a record, where there is any.
    #[inline(always)]
    pub(super) fn timestamp(&self, time: Timestamp) -> Option<Timestamp> {
        self.timed.then_some(time)
    }

    /// Calls a function for a record of `key`, with its state.
    #[inline(always)]
    pub(super) fn put<K: StoredKey, S: State>(
        &mut self,
        table: &mut Table<K, KeyState<S>>,
        key: &K,
        time: Timestamp,
        f: impl FnOnce(&mut S, &mut Context<'_, K, Out, Side>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let (hash, timestamp) = (hash(key), self.timestamp(time));
        let (key, entry) = table.entry(hash, &Owned(key), KeyState::default);
        self.call(key, entry, hash, timestamp, f)?;
        if entry.is_nothing() {
            self.forget(table, hash);
        }
        Ok(())
    }

    /// Calls a function for a key, and sees to its timers. Returns whether it has set one for an event time that is
    /// reached.
    #[inline(always)]
    pub(super) fn call<K, S: State>(
        &mut self,
        key: &K,
        entry: &mut KeyState<S>,
        hash: u64,
        timestamp: Option<Timestamp>,
        f: impl FnOnce(&mut S, &mut Context<'_, K, Out, Side>) -> Result<(), BoxError>,
    ) -> Result<bool, BoxError> {
        let before = self.outputs.mark();
        let mut cx = Context {
            key,
            timestamp,
            watermark: self.watermark,
            timed: self.timed,
            clock: &self.clock,
            timers: &mut entry.timers,
            outputs: &mut self.outputs,
            reached: false,
            refused: None,
        };
        let result = f(&mut entry.state, &mut cx);
        let reached = cx.reached;
        let result = match cx.refused {
            // No policy makes a timer fire that never can.
            Some(refused) => return Err(refused),
            None => result,
        };
        self.index(entry, hash);
        if let Err(error) = result {
            let Some(skipped) = &self.skipped else { return Err(error) };
            skipped.count(&error);
            self.outputs.back_to(before);
        }
        Ok(reached)
    }

    /// Sees to it that the indices lead to a key not later than its first timers.
    #[inline(always)]
    fn index<S: State>(&mut self, entry: &KeyState<S>, hash: u64) {
        if let Some(event) = entry.timers.event.first()
            && entry.event.is_after(event)
        {
            entry.event.set(Some(event));
            self.event.push(event, hash);
        }
        if let Some(processing) = entry.next_processing()
            && entry.processing.is_after(processing)
        {
            entry.processing.set(Some(processing));
            self.processing.push(processing, hash);
        }
    }

    /// Makes the indices of what has been restored.
    #[inline]
    pub(super) fn index_all<K: StoredKey, S: State>(&mut self, table: &Table<K, KeyState<S>>) {
        if !self.indexed {
            self.indexed = true;
            for (hash, entry) in table.hashed() {
                self.index(entry, hash);
            }
        }
    }

    /// When the clock makes something due.
    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.processing.first()
    }

    /// Lets some timers fire, one at a time, in the order of their times: first those of event time. Returns whether
    /// something has been emitted or is left to do.
    pub(super) fn turn<K: StoredKey, S: State>(
        &mut self,
        turn: &mut Turn,
        table: &mut Table<K, KeyState<S>>,
        mut on_timer: impl FnMut(&mut S, Timer, &mut Context<'_, K, Out, Side>) -> Result<(), BoxError>,
    ) -> Result<bool, BoxError> {
        self.index_all(table);
        if let Some(watermark) = turn.watermark() {
            self.watermark = self.watermark.max(watermark);
            self.at_once = 0;
            turn.done();
        }
        while self.outputs.len() < HELD {
            if let Some((time, hash)) = self.event.pop_until(self.watermark.timestamp()) {
                self.fire_event(time, hash, table, &mut on_timer)?;
            } else if let Some(now) = turn.now()
                && let Some((time, hash)) = self.processing.pop_until(now)
            {
                self.fire_processing(now, time, hash, table, &mut on_timer)?;
            } else {
                return Ok(self.outputs.len() > 0);
            }
        }
        Ok(true)
    }

    fn fire_event<K: StoredKey, S: State>(
        &mut self,
        time: Timestamp,
        hash: u64,
        table: &mut Table<K, KeyState<S>>,
        on_timer: &mut impl FnMut(&mut S, Timer, &mut Context<'_, K, Out, Side>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let Some(entry) = table.find(hash, |entry| entry.event.get() == Some(time)) else {
            // The index led here earlier already.
            return Ok(());
        };
        entry.event.set(None);
        if entry.timers.event.first().is_none_or(|first| first > time) {
            // The timer was deleted.
            self.index(entry, hash);
            return Ok(());
        }
        // Two keys of the same hash are told apart by what is due.
        let due = |entry: &KeyState<S>| {
            entry.event.get().is_none() && entry.timers.event.first().is_some_and(|first| first <= time)
        };
        if let Some((key, entry)) = table.find_mut(hash, due)
            && let Some(time) = entry.timers.event.pop_until(time)
        {
            let timer = Timer { time, domain: TimeDomain::EventTime };
            if S::EXPIRES {
                set_now(self.clock.now());
            }
            let again = self.call(key, entry, hash, Some(time), |state, cx| on_timer(state, timer, cx))?;
            self.forget(table, hash);
            if again {
                self.count_at_once()?;
            }
        }
        Ok(())
    }

    fn fire_processing<K: StoredKey, S: State>(
        &mut self,
        now: Timestamp,
        time: Timestamp,
        hash: u64,
        table: &mut Table<K, KeyState<S>>,
        on_timer: &mut impl FnMut(&mut S, Timer, &mut Context<'_, K, Out, Side>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let Some(entry) = table.find(hash, |entry| entry.processing.get() == Some(time)) else {
            return Ok(());
        };
        entry.processing.set(None);
        if entry.next_processing().is_none_or(|next| next > time) {
            self.index(entry, hash);
            return Ok(());
        }
        let due = |entry: &KeyState<S>| {
            entry.processing.get().is_none() && entry.next_processing().is_some_and(|next| next <= time)
        };
        if let Some((key, entry)) = table.find_mut(hash, due) {
            if S::EXPIRES {
                set_now(now);
                entry.state.clean(now);
            }
            match entry.timers.processing.pop_until(time) {
                Some(time) => {
                    let timer = Timer { time, domain: TimeDomain::ProcessingTime };
                    self.call(key, entry, hash, None, |state, cx| on_timer(state, timer, cx))?;
                }
                None => self.index(entry, hash),
            }
            self.forget(table, hash);
        }
        Ok(())
    }

    /// Removes what there is nothing to remember of.
    #[inline(always)]
    pub(super) fn forget<K: StoredKey, S: State>(&self, table: &mut Table<K, KeyState<S>>, hash: u64) {
        table.remove_found(hash, KeyState::is_nothing);
    }

    /// A timer that sets the next one for a time that has come would go on for ever.
    fn count_at_once(&mut self) -> Result<(), BoxError> {
        self.at_once += 1;
        if self.at_once < AT_ONCE {
            return Ok(());
        }
        Err(format!(
            "{AT_ONCE} timers were set one after the other for times that had come already: at the end of the input, when `cx.watermark()` is `Watermark::MAX`, a timer must not set the next one"
        )
        .into())
    }
}

/// What the keys of a stream have to be where a process function is for keys of type `K`.
#[diagnostic::on_unimplemented(
    message = "the stream is keyed by `{Self}`, and the process function is for keys of type `{K}`",
    label = "this is the key of the stream",
    note = "let the closure of `.key_by(..)` return what the function calls its `Key`; a `&str` is kept as a `flow::Text`"
)]
pub trait KeyFor<K> {
    /// The key.
    fn key(self) -> K;
}

#[diagnostic::do_not_recommend]
impl<K> KeyFor<K> for K {
    #[inline(always)]
    fn key(self) -> K {
        self
    }
}

/// A keyed process function in one subtask: a handle that the chain's loop borrows for each batch.
pub struct KeyedProcess<F: KeyedProcessFunction> {
    inner: Rc<RefCell<Inner<F>>>,
    table: Keyed<F::Key, KeyState<F::State>>,
}

struct Inner<F: KeyedProcessFunction> {
    function: F,
    core: Core<F::Out, F::Side>,
}

impl<F: KeyedProcessFunction> Clone for KeyedProcess<F> {
    fn clone(&self) -> Self {
        KeyedProcess { inner: Rc::clone(&self.inner), table: self.table.clone() }
    }
}

impl<F: KeyedProcessFunction> KeyedProcess<F> {
    /// Over the state in `table`. `timed` says whether the stream carries event time, `skipped` counts what fails where
    /// that is to be skipped.
    pub(crate) fn new(
        function: F,
        table: Keyed<F::Key, KeyState<F::State>>,
        clock: Clock,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Self {
        let core = Core::new(clock, timed, skipped);
        KeyedProcess { inner: Rc::new(RefCell::new(Inner { function, core })), table }
    }

    /// For the time of one batch.
    #[must_use]
    pub fn borrow_mut(&self) -> KeyedProcessMut<'_, F> {
        let inner = self.inner.borrow_mut();
        if F::State::EXPIRES {
            set_now(inner.core.clock.now());
        }
        KeyedProcessMut { inner, table: self.table.borrow_mut() }
    }
}

/// [`KeyedProcess`], borrowed for the time of one batch.
pub struct KeyedProcessMut<'p, F: KeyedProcessFunction> {
    inner: RefMut<'p, Inner<F>>,
    table: RefMut<'p, Table<F::Key, KeyState<F::State>>>,
}

impl<F: KeyedProcessFunction> KeyedProcessMut<'_, F> {
    /// Calls the function for a record. What it emits stays here until it is taken out.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    #[inline]
    pub fn put<Q: KeyFor<F::Key>>(&mut self, key: Q, time: Timestamp, record: F::In) -> Result<(), BoxError> {
        let Inner { function, core } = &mut *self.inner;
        core.put(&mut self.table, &key.key(), time, |state, cx| function.process(state, record, cx))
    }

    /// Lets some timers fire. Returns false when nothing is left to do; otherwise there may be something to take out.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    pub fn turn(&mut self, turn: &mut Turn) -> Result<bool, BoxError> {
        let Inner { function, core } = &mut *self.inner;
        core.turn(turn, &mut self.table, |state, timer, cx| function.on_timer(state, timer, cx))
    }

    /// Takes out what was emitted, with its event time.
    pub fn emitted(&mut self) -> Drain<'_, (Timestamp, F::Out)> {
        self.inner.core.outputs.main.drain(..)
    }

    /// Takes out what was emitted to the second output.
    pub fn emitted_aside(&mut self) -> Drain<'_, (Timestamp, F::Side)> {
        self.inner.core.outputs.side.drain(..)
    }
}

impl<F: KeyedProcessFunction> WindowPort for KeyedProcess<F> {
    fn restore(&self, watermark: Watermark) {
        self.inner.borrow_mut().core.watermark = watermark;
    }

    fn next_timer(&self) -> Option<Timestamp> {
        let core = &mut self.inner.borrow_mut().core;
        core.index_all(&self.table.borrow_mut());
        core.next_timer()
    }

    fn late(&self) -> u64 {
        0
    }
}

impl<F: KeyedProcessFunction> fmt::Debug for KeyedProcess<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedProcess").finish_non_exhaustive()
    }
}

impl<F: KeyedProcessFunction> fmt::Debug for KeyedProcessMut<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedProcessMut").finish_non_exhaustive()
    }
}
