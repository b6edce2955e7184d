//! Windows that hold one record made of all.

use super::Contents;
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// Windows hold one record, made of two by a function again and again.
#[derive(Clone, Copy, Debug)]
pub struct Reduce<F> {
    pub(crate) function: F,
}

impl<K, W, In: StateValue, F: Fn(In, In) -> In> Contents<K, W, In> for Reduce<F> {
    /// Empty only while the function runs.
    type Held = Option<In>;
    type Output = In;

    const MERGEABLE: bool = true;

    #[inline(always)]
    fn first(&self, record: In, _: Timestamp) -> Result<Option<In>, BoxError> {
        Ok(Some(record))
    }

    #[inline(always)]
    fn add(&self, held: &mut Option<In>, record: In, _: Timestamp) -> Result<(), BoxError> {
        *held = Some(match held.take() {
            Some(held) => (self.function)(held, record),
            None => record,
        });
        Ok(())
    }

    fn merge(&self, held: &mut Option<In>, other: Option<In>) -> Result<(), BoxError> {
        *held = match (held.take(), other) {
            (Some(held), Some(other)) => Some((self.function)(held, other)),
            (held, other) => held.or(other),
        };
        Ok(())
    }

    fn emit(&self, _: &K, _: &W, held: &mut Option<In>, out: impl FnMut(In)) -> Result<(), BoxError> {
        held.clone().into_iter().for_each(out);
        Ok(())
    }
}
