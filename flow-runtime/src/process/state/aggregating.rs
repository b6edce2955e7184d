//! An aggregate per key.

use std::marker::PhantomData;

use super::{State, Ttl, ValueState};
use crate::{error::BoxError, time::Timestamp, window::Aggregate};

/// An [`Aggregate`] of all that was added: those of windows, or one of your own that has a [`Default`].
///
/// ```
/// use flow::{State, process::AggregatingState, window::aggregate::{Itself, Mean}};
///
/// #[derive(State)]
/// struct Readings {
///     mean: AggregatingState<f64, Mean<Itself>>,
/// }
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct AggregatingState<In, A: Aggregate<In>> {
    held: ValueState<A::Accumulator>,
    records: PhantomData<fn(In)>,
}

impl<In, A: Aggregate<In> + Default> AggregatingState<In, A> {
    /// Adds a value, for an aggregate that does not go by times.
    ///
    /// # Errors
    /// Those of the aggregate, such as a sum that overflows.
    pub fn add(&mut self, value: &In) -> Result<(), BoxError> {
        self.add_at(value, Timestamp::MIN)
    }

    /// Adds a value of a time.
    ///
    /// # Errors
    /// Those of the aggregate, such as a sum that overflows.
    pub fn add_at(&mut self, value: &In, timestamp: Timestamp) -> Result<(), BoxError> {
        let aggregate = A::default();
        match self.held.get_mut() {
            Some(held) => aggregate.add(held, value, timestamp),
            None => {
                self.held.set(aggregate.create(value, timestamp)?);
                Ok(())
            }
        }
    }

    /// The result; none if nothing was added.
    #[must_use]
    pub fn get(&self) -> Option<A::Output> {
        self.held.get().map(|held| A::default().result(held))
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.held.clear();
    }
}

impl<In: 'static, A: Aggregate<In> + Default + 'static> State for AggregatingState<In, A> {
    const EXPIRES: bool = false;
    fn empty(ttl: Option<&'static Ttl>) -> Self {
        AggregatingState { held: ValueState::empty(ttl), records: PhantomData }
    }
    fn copy(&self) -> Self {
        AggregatingState { held: self.held.copy(), records: PhantomData }
    }
    #[inline]
    fn holds_nothing(&self) -> bool {
        self.held.holds_nothing()
    }
    #[inline]
    fn ends(&self) -> Option<Timestamp> {
        self.held.ends()
    }
    fn clean(&mut self, now: Timestamp) {
        self.held.clean(now);
    }
    fn encode(&self) -> Result<Vec<u8>, BoxError> {
        self.held.encode()
    }
    fn decode(bytes: &[u8], ttl: Option<&'static Ttl>) -> Result<Self, BoxError> {
        Ok(AggregatingState { held: ValueState::decode(bytes, ttl)?, records: PhantomData })
    }
}
