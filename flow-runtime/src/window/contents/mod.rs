//! What windows hold of their records, and what they give when they fire.

/// What windows have in common that hold their records, in the order in which they came.
macro_rules! keeps_records {
    ($in:ty) => {
        type Held = Vec<$crate::window::evict::Element<$in>>;

        const MERGEABLE: bool = false;

        fn first(&self, record: $in, timestamp: Timestamp) -> Result<Self::Held, BoxError> {
            Ok(vec![$crate::window::evict::Element { timestamp, record }])
        }

        #[inline]
        fn add(&self, held: &mut Self::Held, record: $in, timestamp: Timestamp) -> Result<(), BoxError> {
            held.push($crate::window::evict::Element { timestamp, record });
            Ok(())
        }

        fn merge(&self, held: &mut Self::Held, mut other: Self::Held) -> Result<(), BoxError> {
            held.append(&mut other);
            Ok(())
        }
    };
}

mod fold;
mod incremental;
mod kept;
mod process;
mod reduce;

pub use fold::Fold;
pub use incremental::{Incremental, With};
pub use kept::{Kept, Wrap};
pub use process::{Process, Records};
pub use reduce::Reduce;

use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// What windows `W` of keys `K` hold of records `In`, and what they give when they fire.
///
/// Implemented by what [`WindowsOf`](super::WindowsOf) makes of aggregates, `reduce` and `process`.
pub trait Contents<K, W, In> {
    /// What one window holds.
    type Held: StateValue;
    /// A result.
    type Output;

    /// Whether what is held can be merged without regard to which window it is from, and firing changes nothing.
    const MERGEABLE: bool;

    /// Whether what is held can be merged at all, as sessions need when they become one.
    const JOINS: bool = true;

    /// Of the first record.
    ///
    /// # Errors
    /// Those of the user's functions, as everywhere here.
    fn first(&self, record: In, timestamp: Timestamp) -> Result<Self::Held, BoxError>;

    /// Adds a record.
    ///
    /// # Errors
    /// As above.
    fn add(&self, held: &mut Self::Held, record: In, timestamp: Timestamp) -> Result<(), BoxError>;

    /// Adds what another window, or slice, holds.
    ///
    /// # Errors
    /// As above.
    fn merge(&self, held: &mut Self::Held, other: Self::Held) -> Result<(), BoxError>;

    /// Gives the results.
    ///
    /// # Errors
    /// As above.
    fn emit(
        &self,
        key: &K,
        window: &W,
        held: &mut Self::Held,
        out: impl FnMut(Self::Output),
    ) -> Result<(), BoxError>;
}
