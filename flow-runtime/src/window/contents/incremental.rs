//! Windows that hold an accumulator.

use super::Contents;
use crate::{error::BoxError, time::Timestamp, window::Aggregate};

/// Windows hold the accumulator of an aggregate and give its result.
#[derive(Clone, Copy, Debug)]
pub struct Incremental<A> {
    pub(crate) aggregate: A,
}

impl<K, W, In, A: Aggregate<In>> Contents<K, W, In> for Incremental<A> {
    type Held = A::Accumulator;
    type Output = A::Output;

    const MERGEABLE: bool = true;

    #[inline(always)]
    fn first(&self, record: In, timestamp: Timestamp) -> Result<A::Accumulator, BoxError> {
        self.aggregate.create(&record, timestamp)
    }

    #[inline(always)]
    fn add(&self, held: &mut A::Accumulator, record: In, timestamp: Timestamp) -> Result<(), BoxError> {
        self.aggregate.add(held, &record, timestamp)
    }

    fn merge(&self, held: &mut A::Accumulator, other: A::Accumulator) -> Result<(), BoxError> {
        self.aggregate.merge(held, other)
    }

    #[inline]
    fn emit(
        &self,
        _: &K,
        _: &W,
        held: &mut A::Accumulator,
        mut out: impl FnMut(A::Output),
    ) -> Result<(), BoxError> {
        out(self.aggregate.result(held));
        Ok(())
    }
}

/// Windows hold the accumulator of an aggregate and give what a function makes of the key, the window and the result.
#[derive(Clone, Copy, Debug)]
pub struct With<A, F> {
    pub(crate) aggregate: A,
    pub(crate) function: F,
}

impl<K, W, In, A, I, F> Contents<K, W, In> for With<A, F>
where
    A: Aggregate<In>,
    F: Fn(&K, &W, A::Output) -> I,
    I: IntoIterator,
{
    type Held = A::Accumulator;
    type Output = I::Item;

    const MERGEABLE: bool = true;

    #[inline(always)]
    fn first(&self, record: In, timestamp: Timestamp) -> Result<A::Accumulator, BoxError> {
        self.aggregate.create(&record, timestamp)
    }

    #[inline(always)]
    fn add(&self, held: &mut A::Accumulator, record: In, timestamp: Timestamp) -> Result<(), BoxError> {
        self.aggregate.add(held, &record, timestamp)
    }

    fn merge(&self, held: &mut A::Accumulator, other: A::Accumulator) -> Result<(), BoxError> {
        self.aggregate.merge(held, other)
    }

    #[inline]
    fn emit(
        &self,
        key: &K,
        window: &W,
        held: &mut A::Accumulator,
        out: impl FnMut(I::Item),
    ) -> Result<(), BoxError> {
        (self.function)(key, window, self.aggregate.result(held)).into_iter().for_each(out);
        Ok(())
    }
}
