//! Joins: pairs of the records of two streams that have the same key.
//!
//! Two records meet when they are in the same [`window`], or when their times are not too far apart ([`interval`]).
//! [`matching`] says what becomes of records that meet nobody. Records are owned when they go in, and closures see the
//! pairs by reference, so that nothing is copied per pair.

pub(crate) mod keys;
pub mod matching;
mod window;

pub use keys::SameKey;
pub use matching::{FullOuter, Inner, LeftOuter, Matching, Pair, RightOuter};
pub use window::{Joined, Met, Pairs, Side, Sides};
