//! Windows that hold the records of two streams apart, and give their pairs when they fire.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::{Matching, Pair, SameKey, keys::Owned};
use crate::{
    error::BoxError,
    record::Slot,
    state::{StateValue, StoredKey},
    time::Timestamp,
    window::{Bounds, Definition, Fired, WindowsMut, contents::Contents},
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
    left: Vec<L>,
    right: Vec<R>,
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
    once: bool,
}

impl<M> Joined<M> {
    pub(crate) fn new(_: M, once: bool) -> Self {
        Joined { matching: PhantomData, once }
    }
}

/// The records of a window that has fired, and have a pair among them.
#[derive(Debug)]
pub struct Met<K, L, R, M> {
    key: K,
    sides: Sides<L, R>,
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
    type Output = Met<K, L, R, M>;

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
        out(Met { key: key.clone(), sides, matching: PhantomData });
        Ok(())
    }
}

impl<K, L, R, S> WindowsMut<'_, K, Side<L, R>, S>
where
    K: StoredKey,
    L: Clone,
    R: Clone,
    S: Definition<K, Side<L, R>>,
{
    /// Puts a record of the left stream into its windows; one that is late for all of them is dropped and counted.
    ///
    /// # Errors
    /// Never, as long as the trigger is one of this crate's.
    #[inline]
    pub fn put_left(&mut self, key: K, time: Timestamp, record: L) -> Result<(), BoxError> {
        self.add(&Owned(&key), time, Side::Left(record)).map(drop)
    }

    /// As [`put_left`](Self::put_left), for the right stream.
    ///
    /// # Errors
    /// As above.
    #[inline]
    pub fn put_right<Q: SameKey<K>>(&mut self, key: Q, time: Timestamp, record: R) -> Result<(), BoxError> {
        self.add(&Owned(&key.same()), time, Side::Right(record)).map(drop)
    }
}

impl<K: StoredKey, W: Bounds, L, R, M: Matching> Fired<K, W, Met<K, L, R, M>> {
    /// The pairs: each left record with each right one.
    pub fn pairs(&mut self) -> Pairs<'_, K, L, R, M> {
        Pairs { timestamp: self.timestamp(), met: &self.result, left: 0, right: 0 }
    }
}

/// The pairs of a window.
#[derive(Debug)]
pub struct Pairs<'w, K, L, R, M> {
    timestamp: Timestamp,
    met: &'w Met<K, L, R, M>,
    left: usize,
    right: usize,
}

impl<'w, K: StoredKey, L, R, M: Matching> Pairs<'w, K, L, R, M> {
    /// The next one.
    #[inline]
    pub fn next_pair(&mut self) -> Option<Pair<'w, K, L, R, M>> {
        let Sides { left, right } = &self.met.sides;
        // A side on which there is nobody counts as one on which somebody is missing.
        if self.right >= right.len().max(1) {
            self.right = 0;
            self.left += 1;
        }
        if self.left >= left.len().max(1) {
            return None;
        }
        let (left, right) = M::pair(left.get(self.left), right.get(self.right))?;
        self.right += 1;
        Some(Pair { key: Slot::new(self.met.key.clone()), timestamp: self.timestamp, left, right })
    }
}
