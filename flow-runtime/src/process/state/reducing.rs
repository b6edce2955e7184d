//! A value per key that records are made into.

use std::marker::PhantomData;

use super::{State, Ttl, ValueState};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// Makes one value of two.
///
/// ```
/// use flow::process::Reducer;
///
/// struct Largest;
///
/// impl Reducer<u64> for Largest {
///     fn reduce(held: u64, next: u64) -> u64 {
///         held.max(next)
///     }
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not reduce values of type `{T}`",
    note = "the second type of a `ReducingState<{T}, _>` implements `flow::process::Reducer<{T}>`"
)]
pub trait Reducer<T>: 'static {
    /// The value that is held from now on.
    fn reduce(held: T, next: T) -> T;
}

/// One value, made of all that were added.
#[derive(Debug)]
pub struct ReducingState<T, R>(ValueState<T>, PhantomData<fn() -> R>);

impl<T, R: Reducer<T>> ReducingState<T, R> {
    /// Adds a value.
    pub fn add(&mut self, value: T) {
        let reduced = match self.0.take() {
            Some(held) => R::reduce(held, value),
            None => value,
        };
        self.0.set(reduced);
    }

    /// The value; none if nothing was added.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T: StateValue, R: Reducer<T>> State for ReducingState<T, R> {
    const EXPIRES: bool = false;
    fn empty(ttl: Option<&'static Ttl>) -> Self {
        ReducingState(ValueState::empty(ttl), PhantomData)
    }
    fn copy(&self) -> Self {
        ReducingState(self.0.copy(), PhantomData)
    }
    #[inline]
    fn holds_nothing(&self) -> bool {
        self.0.holds_nothing()
    }
    #[inline]
    fn ends(&self) -> Option<Timestamp> {
        self.0.ends()
    }
    fn clean(&mut self, now: Timestamp) {
        self.0.clean(now);
    }
    fn encode(&self) -> Result<Vec<u8>, BoxError> {
        self.0.encode()
    }
    fn decode(bytes: &[u8], ttl: Option<&'static Ttl>) -> Result<Self, BoxError> {
        Ok(ReducingState(ValueState::decode(bytes, ttl)?, PhantomData))
    }
}
