//! Windows that hold the records of two streams apart, and give their pairs when they fire.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::{
    error::BoxError, join::Matching, state::StateValue, time::Timestamp, window::contents::Contents,
};

/// A record of one of two streams.
#[derive(Clone, Debug, PartialEq)]
pub enum Side<L, R> {
    /// Of the first one.
    Left(L),
    /// Of the other one.
    Right(R),
}

/// The records of a window, in the order in which they came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sides<L, R> {
    pub(super) left: Vec<L>,
    pub(super) right: Vec<R>,
}

impl<L, R> Sides<L, R> {
    fn of(record: Side<L, R>) -> Self {
        let mut sides = Sides { left: Vec::new(), right: Vec::new() };
        sides.add(record);
        sides
    }

    #[inline]
    fn add(&mut self, record: Side<L, R>) {
        match record {
            Side::Left(record) => self.left.push(record),
            Side::Right(record) => self.right.push(record),
        }
    }
}

/// Windows hold the records of both sides, and give them when they fire.
#[derive(Clone, Copy, Debug)]
pub struct Joined<M> {
    matching: PhantomData<M>,
    /// Whether each window fires once, so that what it holds is free to go then.
    pub(super) once: bool,
}

impl<M> Joined<M> {
    pub(crate) fn new(_: M, once: bool) -> Self {
        Joined { matching: PhantomData, once }
    }
}

/// The records of a window that has fired, and have a pair among them.
#[derive(Debug)]
pub struct Together<K, L, R, M> {
    pub(super) key: K,
    pub(super) sides: Sides<L, R>,
    matching: PhantomData<M>,
}

impl<K, W, L, R, M> Contents<K, W, Side<L, R>> for Joined<M>
where
    K: Clone,
    L: StateValue,
    R: StateValue,
    M: Matching,
{
    type Held = Sides<L, R>;
    type Output = Together<K, L, R, M>;

    // A record of overlapping windows is held in each: as slices, they would have to be put together at each firing.
    const MERGEABLE: bool = false;

    fn first(&self, record: Side<L, R>, _: Timestamp) -> Result<Sides<L, R>, BoxError> {
        Ok(Sides::of(record))
    }

    #[inline]
    fn add(&self, held: &mut Sides<L, R>, record: Side<L, R>, _: Timestamp) -> Result<(), BoxError> {
        held.add(record);
        Ok(())
    }

    fn merge(&self, held: &mut Sides<L, R>, mut other: Sides<L, R>) -> Result<(), BoxError> {
        held.left.append(&mut other.left);
        held.right.append(&mut other.right);
        Ok(())
    }

    fn emit(
        &self,
        key: &K,
        _: &W,
        held: &mut Sides<L, R>,
        mut out: impl FnMut(Self::Output),
    ) -> Result<(), BoxError> {
        if M::pair(held.left.first(), held.right.first()).is_none() {
            return Ok(());
        }
        let sides = match self.once {
            true => Sides { left: std::mem::take(&mut held.left), right: std::mem::take(&mut held.right) },
            false => held.clone(),
        };
        out(Together { key: key.clone(), sides, matching: PhantomData });
        Ok(())
    }
}
