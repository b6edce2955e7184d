//! Windows that hold what records are added to, one after the other.

use super::Contents;
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// Windows hold a value to which a function adds each record.
#[derive(Clone, Copy, Debug)]
pub struct Fold<A, F> {
    pub(crate) initial: A,
    pub(crate) function: F,
}

impl<K, W, In, A: StateValue, F: Fn(&mut A, In)> Contents<K, W, In> for Fold<A, F> {
    type Held = A;
    type Output = A;

    // Nobody says how two become one.
    const MERGEABLE: bool = false;
    const JOINS: bool = false;

    #[inline]
    fn first(&self, record: In, _: Timestamp) -> Result<A, BoxError> {
        let mut held = self.initial.clone();
        (self.function)(&mut held, record);
        Ok(held)
    }

    #[inline(always)]
    fn add(&self, held: &mut A, record: In, _: Timestamp) -> Result<(), BoxError> {
        (self.function)(held, record);
        Ok(())
    }

    fn merge(&self, _: &mut A, _: A) -> Result<(), BoxError> {
        Err("a fold only adds records: sessions, which become one, need `reduce`, an aggregate or `process`"
            .into())
    }

    fn emit(&self, _: &K, _: &W, held: &mut A, mut out: impl FnMut(A)) -> Result<(), BoxError> {
        out(held.clone());
        Ok(())
    }
}
