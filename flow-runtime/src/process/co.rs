//! Process functions over two connected streams.

use std::{
    cell::{RefCell, RefMut},
    fmt,
    rc::Rc,
    vec::Drain,
};

use super::{
    CoProcessFunction, KeyFor, KeyedCoProcessFunction, State,
    context::Outputs,
    keyed::{Core, KeyState},
    plain::PlainCore,
    state::ttl::set_now,
};
use crate::{
    chain::Skipped,
    error::BoxError,
    join::SameKey,
    state::{Keyed, OperatorState, OperatorStateMut, Table},
    time::{Clock, Timestamp, Watermark},
    window::{Turn, lent::WindowPort},
};

/// A keyed process function over two streams in one subtask: a handle that the loops of both borrow for each batch.
pub struct KeyedCoProcess<F: KeyedCoProcessFunction> {
    inner: Rc<RefCell<KeyedInner<F>>>,
    table: Keyed<F::Key, KeyState<F::State>>,
}

struct KeyedInner<F: KeyedCoProcessFunction> {
    function: F,
    core: Core<F::Out, F::Side>,
}

impl<F: KeyedCoProcessFunction> Clone for KeyedCoProcess<F> {
    fn clone(&self) -> Self {
        KeyedCoProcess { inner: Rc::clone(&self.inner), table: self.table.clone() }
    }
}

impl<F: KeyedCoProcessFunction> KeyedCoProcess<F> {
    pub(crate) fn new(
        function: F,
        table: Keyed<F::Key, KeyState<F::State>>,
        clock: Clock,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Self {
        let core = Core::new(clock, timed, skipped);
        KeyedCoProcess { inner: Rc::new(RefCell::new(KeyedInner { function, core })), table }
    }

    /// For the time of one batch.
    #[must_use]
    pub fn borrow_mut(&self) -> KeyedCoProcessMut<'_, F> {
        let inner = self.inner.borrow_mut();
        if F::State::EXPIRES {
            set_now(inner.core.clock.now());
        }
        KeyedCoProcessMut { inner, table: self.table.borrow_mut() }
    }
}

/// [`KeyedCoProcess`], borrowed for the time of one batch.
pub struct KeyedCoProcessMut<'p, F: KeyedCoProcessFunction> {
    inner: RefMut<'p, KeyedInner<F>>,
    table: RefMut<'p, Table<F::Key, KeyState<F::State>>>,
}

impl<F: KeyedCoProcessFunction> KeyedCoProcessMut<'_, F> {
    /// Calls the function for a record of the first stream. What it emits stays here until it is taken out.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    #[inline]
    pub fn put_left<Q: KeyFor<F::Key>>(
        &mut self,
        key: Q,
        time: Timestamp,
        record: F::Left,
    ) -> Result<(), BoxError> {
        let KeyedInner { function, core } = &mut *self.inner;
        core.put(&mut self.table, &key.key(), time, |state, cx| function.process_left(state, record, cx))
    }

    /// As [`put_left`](Self::put_left), for the second stream.
    ///
    /// # Errors
    /// As above.
    #[inline]
    pub fn put_right<Q: SameKey<F::Key>>(
        &mut self,
        key: Q,
        time: Timestamp,
        record: F::Right,
    ) -> Result<(), BoxError> {
        let KeyedInner { function, core } = &mut *self.inner;
        core.put(&mut self.table, &key.same(), time, |state, cx| function.process_right(state, record, cx))
    }

    /// Lets some timers fire. Returns false when nothing is left to do; otherwise there may be something to take out.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    pub fn turn(&mut self, turn: &mut Turn) -> Result<bool, BoxError> {
        let KeyedInner { function, core } = &mut *self.inner;
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

impl<F: KeyedCoProcessFunction> WindowPort for KeyedCoProcess<F> {
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

/// A process function over two streams without keys in one subtask.
pub struct CoProcess<F: CoProcessFunction> {
    inner: Rc<RefCell<Inner<F>>>,
    state: OperatorState<F::State>,
}

struct Inner<F: CoProcessFunction> {
    function: F,
    core: PlainCore<F::Out, F::Side>,
}

impl<F: CoProcessFunction> Clone for CoProcess<F> {
    fn clone(&self) -> Self {
        CoProcess { inner: Rc::clone(&self.inner), state: self.state.clone() }
    }
}

impl<F: CoProcessFunction> CoProcess<F> {
    pub(crate) fn new(
        function: F,
        state: OperatorState<F::State>,
        clock: Clock,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Self {
        let inner = Inner { function, core: PlainCore { outputs: Outputs::new(), clock, timed, skipped } };
        CoProcess { inner: Rc::new(RefCell::new(inner)), state }
    }

    /// For the time of one batch.
    #[must_use]
    pub fn borrow_mut(&self) -> CoProcessMut<'_, F> {
        CoProcessMut { inner: self.inner.borrow_mut(), state: self.state.borrow_mut() }
    }
}

/// [`CoProcess`], borrowed for the time of one batch.
pub struct CoProcessMut<'p, F: CoProcessFunction> {
    inner: RefMut<'p, Inner<F>>,
    state: OperatorStateMut<'p, F::State>,
}

impl<F: CoProcessFunction> CoProcessMut<'_, F> {
    /// Calls the function for a record of the first stream. What it emits stays here until it is taken out.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    #[inline]
    pub fn put_left(&mut self, time: Timestamp, record: F::Left) -> Result<(), BoxError> {
        let Inner { function, core } = &mut *self.inner;
        core.call(time, |cx| function.process_left(&mut self.state, record, cx))
    }

    /// As [`put_left`](Self::put_left), for the second stream.
    ///
    /// # Errors
    /// As above.
    #[inline]
    pub fn put_right(&mut self, time: Timestamp, record: F::Right) -> Result<(), BoxError> {
        let Inner { function, core } = &mut *self.inner;
        core.call(time, |cx| function.process_right(&mut self.state, record, cx))
    }

    /// Whether there is anything to take out.
    ///
    /// # Errors
    /// None.
    pub fn turn(&mut self, _: &mut Turn) -> Result<bool, BoxError> {
        Ok(self.inner.core.outputs.len() > 0)
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

impl<F: CoProcessFunction> WindowPort for CoProcess<F> {
    fn restore(&self, _: Watermark) {}

    fn next_timer(&self) -> Option<Timestamp> {
        None
    }

    fn late(&self) -> u64 {
        0
    }
}

impl<F: KeyedCoProcessFunction> fmt::Debug for KeyedCoProcess<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedCoProcess").finish_non_exhaustive()
    }
}

impl<F: KeyedCoProcessFunction> fmt::Debug for KeyedCoProcessMut<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedCoProcessMut").finish_non_exhaustive()
    }
}

impl<F: CoProcessFunction> fmt::Debug for CoProcess<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoProcess").finish_non_exhaustive()
    }
}

impl<F: CoProcessFunction> fmt::Debug for CoProcessMut<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoProcessMut").finish_non_exhaustive()
    }
}
