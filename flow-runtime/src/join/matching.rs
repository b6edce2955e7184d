//! What becomes of records that meet nobody: inner and outer joins.

use crate::{
    record::{Lend, Slot},
    time::Timestamp,
};

/// The kind of a join: in which form its closure sees the records of both sides.
pub trait Matching: Copy + 'static {
    /// A left record, or that there is none.
    type Left<'p, L: 'p>;
    /// A right record, or that there is none.
    type Right<'p, R: 'p>;

    /// What is noted of a record that may meet nobody.
    type Noted: Noted;

    /// Whether left records that meet nobody come out.
    const LEFT: bool;
    /// Whether right records that meet nobody come out.
    const RIGHT: bool;

    /// What comes out of two records, of which one may be missing; `None` if nothing does.
    fn pair<'p, L, R>(
        left: Option<&'p L>,
        right: Option<&'p R>,
    ) -> Option<(Self::Left<'p, L>, Self::Right<'p, R>)>;
}

/// Whether a record has met anybody, or nothing, where nobody asks.
pub trait Noted: Copy + std::fmt::Debug + Send + 'static {
    /// Of a record that has met somebody, or not.
    fn of(met: bool) -> Self;
    /// It has met somebody.
    fn note(&mut self);
    /// Whether it has met somebody, as far as is known.
    fn has_met(self) -> bool;
}

impl Noted for () {
    #[inline(always)]
    fn of(_: bool) {}
    #[inline(always)]
    fn note(&mut self) {}
    #[inline(always)]
    fn has_met(self) -> bool {
        false
    }
}

impl Noted for bool {
    #[inline(always)]
    fn of(met: bool) -> bool {
        met
    }
    #[inline(always)]
    fn note(&mut self) {
        *self = true;
    }
    #[inline(always)]
    fn has_met(self) -> bool {
        self
    }
}

/// Only pairs.
#[derive(Clone, Copy, Debug)]
pub struct Inner;

/// Pairs, and left records that meet nobody.
#[derive(Clone, Copy, Debug)]
pub struct LeftOuter;

/// Pairs, and right records that meet nobody.
#[derive(Clone, Copy, Debug)]
pub struct RightOuter;

/// Pairs, and all records that meet nobody.
#[derive(Clone, Copy, Debug)]
pub struct FullOuter;

impl Matching for Inner {
    type Left<'p, L: 'p> = &'p L;
    type Right<'p, R: 'p> = &'p R;
    type Noted = ();
    const LEFT: bool = false;
    const RIGHT: bool = false;
    #[inline(always)]
    fn pair<'p, L, R>(left: Option<&'p L>, right: Option<&'p R>) -> Option<(&'p L, &'p R)> {
        Some((left?, right?))
    }
}

impl Matching for LeftOuter {
    type Left<'p, L: 'p> = &'p L;
    type Right<'p, R: 'p> = Option<&'p R>;
    type Noted = bool;
    const LEFT: bool = true;
    const RIGHT: bool = false;
    #[inline(always)]
    fn pair<'p, L, R>(left: Option<&'p L>, right: Option<&'p R>) -> Option<(&'p L, Option<&'p R>)> {
        Some((left?, right))
    }
}

impl Matching for RightOuter {
    type Left<'p, L: 'p> = Option<&'p L>;
    type Right<'p, R: 'p> = &'p R;
    type Noted = bool;
    const LEFT: bool = false;
    const RIGHT: bool = true;
    #[inline(always)]
    fn pair<'p, L, R>(left: Option<&'p L>, right: Option<&'p R>) -> Option<(Option<&'p L>, &'p R)> {
        Some((left, right?))
    }
}

impl Matching for FullOuter {
    type Left<'p, L: 'p> = Option<&'p L>;
    type Right<'p, R: 'p> = Option<&'p R>;
    type Noted = bool;
    const LEFT: bool = true;
    const RIGHT: bool = true;
    #[inline(always)]
    fn pair<'p, L, R>(left: Option<&'p L>, right: Option<&'p R>) -> Option<(Option<&'p L>, Option<&'p R>)> {
        Some((left, right))
    }
}

/// Two records that have met, or one that has met nobody.
pub struct Pair<'p, K: Lend, L: 'p, R: 'p, M: Matching> {
    /// The key, to be lent.
    pub key: Slot<K>,
    /// The event time of what is made of them.
    pub timestamp: Timestamp,
    /// The left one.
    pub left: M::Left<'p, L>,
    /// The right one.
    pub right: M::Right<'p, R>,
}

impl<K: Lend, L, R, M: Matching> std::fmt::Debug for Pair<'_, K, L, R, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("timestamp", &self.timestamp).finish_non_exhaustive()
    }
}
