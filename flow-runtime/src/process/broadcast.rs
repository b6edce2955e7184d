//! Process functions over a keyed stream and one that is everywhere.

use std::{
    cell::{RefCell, RefMut},
    fmt,
    rc::Rc,
    vec::Drain,
};

use super::{
    KeyFor, KeyedBroadcastProcessFunction, State,
    context::PlainContext,
    keyed::{Core, KeyState},
    state::ttl::set_now,
};
use crate::{
    chain::Skipped,
    error::BoxError,
    state::{Keyed, OperatorState, OperatorStateMut, Table},
    time::{Clock, Timestamp, Watermark},
    window::{Turn, lent::WindowPort},
};

/// A process function over a keyed and a broadcast stream in one subtask: a handle that the loops of both borrow for
/// each batch.
pub struct BroadcastProcess<F: KeyedBroadcastProcessFunction> {
    inner: Rc<RefCell<Inner<F>>>,
    table: Keyed<F::Key, KeyState<F::State>>,
    everywhere: OperatorState<F::BroadcastState>,
}

struct Inner<F: KeyedBroadcastProcessFunction> {
    function: F,
    core: Core<F::Out, F::Side>,
}

impl<F: KeyedBroadcastProcessFunction> Clone for BroadcastProcess<F> {
    fn clone(&self) -> Self {
        BroadcastProcess {
            inner: Rc::clone(&self.inner),
            table: self.table.clone(),
            everywhere: self.everywhere.clone(),
        }
    }
}

impl<F: KeyedBroadcastProcessFunction> BroadcastProcess<F> {
    pub(crate) fn new(
        function: F,
        table: Keyed<F::Key, KeyState<F::State>>,
        everywhere: OperatorState<F::BroadcastState>,
        clock: Clock,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Self {
        let core = Core::new(clock, timed, skipped);
        BroadcastProcess { inner: Rc::new(RefCell::new(Inner { function, core })), table, everywhere }
    }

    /// For the time of one batch.
    #[must_use]
    pub fn borrow_mut(&self) -> BroadcastProcessMut<'_, F> {
        let inner = self.inner.borrow_mut();
        if F::State::EXPIRES {
            set_now(inner.core.clock.now());
        }
        BroadcastProcessMut {
            inner,
            table: self.table.borrow_mut(),
            everywhere: self.everywhere.borrow_mut(),
        }
    }
}

/// [`BroadcastProcess`], borrowed for the time of one batch.
pub struct BroadcastProcessMut<'p, F: KeyedBroadcastProcessFunction> {
    inner: RefMut<'p, Inner<F>>,
    table: RefMut<'p, Table<F::Key, KeyState<F::State>>>,
    everywhere: OperatorStateMut<'p, F::BroadcastState>,
}

impl<F: KeyedBroadcastProcessFunction> BroadcastProcessMut<'_, F> {
    /// Calls the function for a record of the keyed stream. What it emits stays here until it is taken out.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    #[inline]
    pub fn put_left<Q: KeyFor<F::Key>>(
        &mut self,
        key: Q,
        time: Timestamp,
        record: F::In,
    ) -> Result<(), BoxError> {
        let Inner { function, core } = &mut *self.inner;
        // Only read, so that it does not count as changed.
        let everywhere = &*self.everywhere;
        core.put(&mut self.table, &key.key(), time, |state, cx| {
            function.process(state, everywhere, record, cx)
        })
    }

    /// Calls the function for a record of the broadcast stream.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    #[inline]
    pub fn put_right(&mut self, record: F::Broadcast) -> Result<(), BoxError> {
        let Inner { function, core } = &mut *self.inner;
        let before = core.outputs.mark();
        // The first time that is not late.
        let timestamp = core.timed.then(|| core.watermark.timestamp().plus_millis(1));
        let mut cx = PlainContext { timestamp, clock: &core.clock, outputs: &mut core.outputs };
        if let Err(error) = function.process_broadcast(&mut self.everywhere, record, &mut cx) {
            let Some(skipped) = &core.skipped else { return Err(error) };
            skipped.count(&error);
            core.outputs.back_to(before);
        }
        Ok(())
    }

    /// Lets some timers fire. Returns false when nothing is left to do; otherwise there may be something to take out.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    pub fn turn(&mut self, turn: &mut Turn) -> Result<bool, BoxError> {
        let Inner { function, core } = &mut *self.inner;
        let everywhere = &*self.everywhere;
        core.turn(turn, &mut self.table, |state, timer, cx| function.on_timer(state, everywhere, timer, cx))
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

impl<F: KeyedBroadcastProcessFunction> WindowPort for BroadcastProcess<F> {
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

impl<F: KeyedBroadcastProcessFunction> fmt::Debug for BroadcastProcess<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastProcess").finish_non_exhaustive()
    }
}

impl<F: KeyedBroadcastProcessFunction> fmt::Debug for BroadcastProcessMut<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastProcessMut").finish_non_exhaustive()
    }
}
