//! Process functions over records alone.

use std::{
    cell::{RefCell, RefMut},
    fmt,
    rc::Rc,
    vec::Drain,
};

use super::{
    ProcessFunction,
    context::{Outputs, PlainContext},
};
use crate::{
    chain::Skipped,
    error::BoxError,
    state::{OperatorState, OperatorStateMut},
    time::{Clock, Timestamp},
};

/// What all process functions without keys have in common.
pub(super) struct PlainCore<Out, Side> {
    pub(super) outputs: Outputs<Out, Side>,
    pub(super) clock: Clock,
    /// Whether the stream carries event time.
    pub(super) timed: bool,
    pub(super) skipped: Option<Skipped>,
}

impl<Out, Side> PlainCore<Out, Side> {
    /// Calls a function for a record. Where it fails and that is to be skipped, it has emitted nothing.
    #[inline(always)]
    pub(super) fn call(
        &mut self,
        time: Timestamp,
        f: impl FnOnce(&mut PlainContext<'_, Out, Side>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let PlainCore { outputs, clock, timed, skipped } = self;
        let before = outputs.mark();
        let mut cx = PlainContext { timestamp: timed.then_some(time), clock, outputs };
        if let Err(error) = f(&mut cx) {
            let Some(skipped) = skipped else { return Err(error) };
            skipped.count(&error);
            outputs.back_to(before);
        }
        Ok(())
    }
}

/// A process function in one subtask: a handle that the chain's loop borrows for each batch.
pub struct Process<F: ProcessFunction> {
    inner: Rc<RefCell<Inner<F>>>,
    state: OperatorState<F::State>,
}

struct Inner<F: ProcessFunction> {
    function: F,
    core: PlainCore<F::Out, F::Side>,
}

impl<F: ProcessFunction> Clone for Process<F> {
    fn clone(&self) -> Self {
        Process { inner: Rc::clone(&self.inner), state: self.state.clone() }
    }
}

impl<F: ProcessFunction> Process<F> {
    pub(crate) fn new(
        function: F,
        state: OperatorState<F::State>,
        clock: Clock,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Self {
        let inner = Inner { function, core: PlainCore { outputs: Outputs::new(), clock, timed, skipped } };
        Process { inner: Rc::new(RefCell::new(inner)), state }
    }

    /// For the time of one batch.
    #[must_use]
    pub fn borrow_mut(&self) -> ProcessMut<'_, F> {
        ProcessMut { inner: self.inner.borrow_mut(), state: self.state.borrow_mut() }
    }
}

/// [`Process`], borrowed for the time of one batch.
pub struct ProcessMut<'p, F: ProcessFunction> {
    inner: RefMut<'p, Inner<F>>,
    state: OperatorStateMut<'p, F::State>,
}

impl<F: ProcessFunction> ProcessMut<'_, F> {
    /// Calls the function for a record. What it emits has to be taken out before the next one.
    ///
    /// # Errors
    /// Those of the function, unless they are skipped.
    #[inline]
    pub fn put(&mut self, time: Timestamp, record: F::In) -> Result<(), BoxError> {
        let Inner { function, core } = &mut *self.inner;
        core.call(time, |cx| function.process(&mut self.state, record, cx))
    }

    /// Takes out what was emitted, with its event time.
    #[inline]
    pub fn emitted(&mut self) -> Drain<'_, (Timestamp, F::Out)> {
        self.inner.core.outputs.main.drain(..)
    }

    /// Takes out what was emitted to the second output.
    #[inline]
    pub fn emitted_aside(&mut self) -> Drain<'_, (Timestamp, F::Side)> {
        self.inner.core.outputs.side.drain(..)
    }
}

impl<F: ProcessFunction> fmt::Debug for Process<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

impl<F: ProcessFunction> fmt::Debug for ProcessMut<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessMut").finish_non_exhaustive()
    }
}
