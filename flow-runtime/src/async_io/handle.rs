//! What the generated loop and the chain hold of the operator.

use std::{future::Future, rc::Rc};

use super::{Done, Settings, link::Link, queue::Queue};
use crate::{
    error::BoxError,
    state::{OperatorPort, OperatorState, OperatorStateMut, StateValue},
    time::{Timestamp, Watermark},
    watermark::Mark,
    window::{Turn, lent::WindowPort},
    worker::Alarm,
};

/// A handle to what an operator has under way in one subtask; the chain's loops borrow it for each batch.
pub struct Asynchronous<T, R>(OperatorState<Queue<T, R>>);

impl<T, R> Clone for Asynchronous<T, R> {
    fn clone(&self) -> Self {
        Asynchronous(self.0.clone())
    }
}

impl<T, R> std::fmt::Debug for Asynchronous<T, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asynchronous")
    }
}

impl<T: StateValue, R: Send + 'static> Asynchronous<T, R> {
    pub(crate) fn new(settings: Settings, link: Link<R>) -> Self {
        Asynchronous(OperatorState::of(Queue::new(settings, link)))
    }

    pub(crate) fn port(&self) -> Rc<dyn OperatorPort> {
        Rc::new(self.0.clone())
    }

    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> AsynchronousMut<'_, T, R> {
        AsynchronousMut(self.0.borrow_mut())
    }
}

/// What a loop borrows.
pub struct AsynchronousMut<'h, T, R>(OperatorStateMut<'h, Queue<T, R>>);

impl<T, R> std::fmt::Debug for AsynchronousMut<'_, T, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AsynchronousMut")
    }
}

impl<T: StateValue, R: Send + 'static> AsynchronousMut<'_, T, R> {
    /// A record comes in.
    #[inline]
    pub fn put(&mut self, record: T, time: Timestamp) {
        self.0.put(record, time);
    }

    /// Takes what was answered, and starts what there is room for. Returns false when nothing is left to do; otherwise
    /// there are [answers](Self::done).
    ///
    /// # Errors
    /// When a future has panicked.
    pub fn turn<F>(&mut self, turn: &mut Turn, mut ask: impl FnMut(T) -> F) -> Result<bool, BoxError>
    where
        F: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        let queue = &mut *self.0;
        if let Some(watermark) = turn.watermark() {
            queue.hear(watermark);
            turn.done();
        }
        queue.receive(&mut ask)?;
        if queue.emit() {
            return Ok(true);
        }
        queue.start_more(&mut ask);
        queue.pass();
        Ok(false)
    }

    /// What goes on through the chain.
    pub fn done(&mut self) -> std::vec::Drain<'_, Done<T, R>> {
        self.0.done()
    }
}

impl<T: StateValue, R: Send + 'static> WindowPort for Asynchronous<T, R> {
    fn restore(&self, watermark: Watermark) {
        self.0.borrow_mut().restore_watermark(watermark);
    }

    fn next_timer(&self) -> Option<Timestamp> {
        None
    }

    fn late(&self) -> u64 {
        0
    }
}

/// What the engine needs of an operator that holds records and event time back.
pub(crate) trait HoldsBack {
    /// `alarm` wakes the chain.
    fn start(&self, alarm: Alarm);
    /// How far event time has come behind it.
    fn mark(&self, before: Mark) -> Mark;
    /// What a checkpoint remembers: how far event time had come behind it while there was input.
    fn reached(&self) -> Option<Watermark>;
    /// Whether it takes no more records now.
    fn is_full(&self) -> bool;
    /// Whether nothing is held back.
    fn is_empty(&self) -> bool;
    /// Whether there is more to emit now that the watermark has gone on.
    fn has_more(&self) -> bool;
}

impl<T: StateValue, R: Send + 'static> HoldsBack for Asynchronous<T, R> {
    fn start(&self, alarm: Alarm) {
        self.0.borrow().link().wake_with(alarm);
    }

    fn mark(&self, before: Mark) -> Mark {
        self.0.borrow().mark_behind(before)
    }

    fn reached(&self) -> Option<Watermark> {
        self.0.borrow().before_end()
    }

    fn is_full(&self) -> bool {
        self.0.borrow().is_full()
    }

    fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    fn has_more(&self) -> bool {
        self.0.borrow().has_more()
    }
}
