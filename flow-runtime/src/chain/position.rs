//! Which operator and which record a chain is at.
//!
//! The loop notes both in a local [`At`]. Nothing reads them while all goes well, and the optimizer keeps them in
//! registers or drops them; when a closure panics, unwinding runs [`At`]'s destructor, which leaves the position for
//! whoever catches the panic.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::error::BoxError;

/// Why a chain stopped in the middle of a batch.
#[derive(Debug)]
pub struct ChainError {
    pub(crate) operator: usize,
    pub(crate) record: u64,
    pub(crate) fault: Fault,
}

/// What happened there.
#[derive(Debug)]
pub(crate) enum Fault {
    User(BoxError),
    Sink(BoxError),
    Source(BoxError),
    Panic(String),
}

thread_local! {
    static PANICKED_AT: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// The position of the last panic on this thread that went through a chain.
pub(crate) fn panicked_at() -> (usize, u64) {
    PANICKED_AT.get()
}

/// What went wrong with a record that may have waited for others, so that the chain is at another one by now.
#[derive(Debug)]
pub struct Failed {
    /// Its number in the batch, from 1.
    pub record: u64,
    /// What it was.
    pub cause: BoxError,
}

/// The position of a chain in its batch, and the one way in which it applies closures.
#[derive(Debug)]
pub struct At {
    operator: usize,
    record: u64,
}

impl At {
    /// Before the first record of a batch, at the chain's first operator.
    #[inline(always)]
    #[must_use]
    pub fn start(operator: usize) -> Self {
        At { operator, record: 0 }
    }

    /// The next record of the batch.
    #[inline(always)]
    pub fn next(&mut self) {
        self.record += 1;
    }

    /// The number of the record that it is at, from 1.
    #[inline(always)]
    #[must_use]
    pub fn record(&self) -> u64 {
        self.record
    }

    /// Comes back to a record that has waited, or to the one behind all that have.
    #[inline(always)]
    pub fn back_to(&mut self, record: u64) {
        self.record = record;
    }

    /// Enters an operator.
    #[inline(always)]
    pub fn enter(&mut self, operator: usize) {
        self.operator = operator;
    }

    /// Comes to the answer to a record that an operator has asked for.
    #[inline(always)]
    pub fn answer(&mut self, operator: usize, record: u64) {
        self.operator = operator;
        self.record = record + 1;
    }

    /// Applies a closure in place. Its argument's type is known before the closure is checked, so closures need no
    /// annotations; and since nothing here is generic over a lifetime, items may borrow.
    #[inline(always)]
    pub fn call<A, R>(&mut self, operator: usize, argument: A, f: impl FnOnce(A) -> R) -> R {
        self.operator = operator;
        f(argument)
    }

    /// As [`call`](Self::call), for two arguments.
    #[inline(always)]
    pub fn call2<A, B, R>(&mut self, operator: usize, a: A, b: B, f: impl FnOnce(A, B) -> R) -> R {
        self.operator = operator;
        f(a, b)
    }

    /// As [`call`](Self::call), for a closure that may fail.
    ///
    /// # Errors
    /// The closure's, with the position.
    #[inline(always)]
    pub fn attempt<A, R>(
        &mut self,
        operator: usize,
        argument: A,
        f: impl FnOnce(A) -> Result<R, BoxError>,
    ) -> Result<R, ChainError> {
        self.operator = operator;
        match f(argument) {
            Ok(value) => Ok(value),
            Err(cause) => Err(self.failed(Fault::User(cause))),
        }
    }

    /// As [`attempt`](Self::attempt), but a record whose closure fails is skipped and counted.
    #[inline(always)]
    pub fn attempt_or_skip<A, R>(
        &mut self,
        operator: usize,
        skipped: &Skipped,
        argument: A,
        f: impl FnOnce(A) -> Result<R, BoxError>,
    ) -> Option<R> {
        self.operator = operator;
        match f(argument) {
            Ok(value) => Some(value),
            Err(cause) => {
                skipped.count(&cause);
                None
            }
        }
    }

    /// The record's way out of the chain failed in an operator of the runtime, a sum that overflows for example.
    ///
    /// # Errors
    /// The given one, with the position.
    #[inline(always)]
    pub fn check<R>(&self, result: Result<R, BoxError>) -> Result<R, ChainError> {
        match result {
            Ok(value) => Ok(value),
            Err(cause) => Err(self.failed(Fault::User(cause))),
        }
    }

    /// As [`check`](Self::check), where the record that failed may be one that has waited.
    ///
    /// # Errors
    /// The given one, with its position.
    #[inline(always)]
    pub fn check_waited(&mut self, result: Result<(), Failed>) -> Result<(), ChainError> {
        match result {
            Ok(()) => Ok(()),
            Err(Failed { record, cause }) => {
                self.record = record;
                Err(self.failed(Fault::User(cause)))
            }
        }
    }

    /// As [`check`](Self::check), but a record that fails there is skipped and counted.
    #[inline(always)]
    pub fn check_or_skip<R>(&self, skipped: &Skipped, result: Result<R, BoxError>) -> Option<R> {
        match result {
            Ok(value) => Some(value),
            Err(cause) => {
                skipped.count(&cause);
                None
            }
        }
    }

    /// As [`call`](Self::call), for three arguments.
    #[inline(always)]
    pub fn call3<A, B, C, R>(
        &mut self,
        operator: usize,
        a: A,
        b: B,
        c: C,
        f: impl FnOnce(A, B, C) -> R,
    ) -> R {
        self.operator = operator;
        f(a, b, c)
    }

    /// As [`check`](Self::check), for what a sink's buffer says.
    ///
    /// # Errors
    /// The given one, with the position.
    #[inline(always)]
    pub fn written(&self, result: Result<(), BoxError>) -> Result<(), ChainError> {
        match result {
            Ok(()) => Ok(()),
            Err(cause) => Err(self.failed(Fault::Sink(cause))),
        }
    }

    #[cold]
    fn failed(&self, fault: Fault) -> ChainError {
        ChainError { operator: self.operator, record: self.record.saturating_sub(1), fault }
    }
}

impl Drop for At {
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            PANICKED_AT.set((self.operator, self.record.saturating_sub(1)));
        }
    }
}

/// Counts the records that an operator skipped because its closure failed.
#[derive(Clone, Debug)]
pub struct Skipped {
    uid: Rc<str>,
    count: Rc<Cell<u64>>,
    total: Arc<AtomicU64>,
}

impl Skipped {
    pub(crate) fn new(uid: Rc<str>, total: Arc<AtomicU64>) -> Self {
        Skipped { uid, count: Rc::default(), total }
    }

    #[cold]
    pub(crate) fn count(&self, cause: &BoxError) {
        let n = self.count.get() + 1;
        self.count.set(n);
        self.total.fetch_add(1, Ordering::Relaxed);
        // Each power of two: the first ones are seen at once, and a flood of bad records does not become a flood of
        // log lines.
        if n.is_power_of_two() {
            tracing::warn!(operator = &*self.uid, skipped = n, "skipped a record: {cause}");
        }
    }
}
