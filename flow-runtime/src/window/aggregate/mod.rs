//! Aggregates: what a window holds instead of its records.

mod best;
mod distinct;
mod extremes;
mod mean;
mod pick;
mod projection;
mod sums;
mod tuples;

pub use best::{By, MaxBy, MinBy, Paired, Ranked, max_by, min_by};
pub use distinct::{Distinct, distinct};
pub use extremes::{Max, Min, TopN, max, min, top_n};
pub use mean::{Mean, Number, mean};
pub use pick::{First, Last, first, last};
pub use projection::{Itself, Project};
pub use sums::{Count, Total, count, sum};
pub use tuples::{Each, each};

use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// Makes one value of the records of a window, one record at a time.
///
/// There is no empty accumulator: a window begins with a record, and the smallest of no numbers is none.
///
/// Which records come first is not determined when they come from several subtasks, so the result should not depend
/// on it; [`first`] and [`last`] go by the time of the records.
///
/// ```
/// use flow_runtime::{error::BoxError, time::Timestamp, window::Aggregate};
///
/// /// Whether all records were positive.
/// struct AllPositive;
///
/// impl Aggregate<i64> for AllPositive {
///     type Accumulator = bool;
///     type Output = bool;
///
///     fn create(&self, first: &i64, _: Timestamp) -> Result<bool, BoxError> {
///         Ok(*first > 0)
///     }
///
///     fn add(&self, so_far: &mut bool, record: &i64, _: Timestamp) -> Result<(), BoxError> {
///         *so_far &= *record > 0;
///         Ok(())
///     }
///
///     fn merge(&self, so_far: &mut bool, other: bool) -> Result<(), BoxError> {
///         *so_far &= other;
///         Ok(())
///     }
///
///     fn result(&self, accumulator: &bool) -> bool {
///         *accumulator
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an aggregate of records of type `{In}`",
    note = "aggregates are in `flow::window::aggregate`, and take a closure from `&{In}` where they need a value; one of your own implements `flow::window::Aggregate<{In}>`"
)]
pub trait Aggregate<In> {
    /// What a window holds.
    type Accumulator: StateValue;
    /// What it gives.
    type Output;

    /// The accumulator of the first record.
    ///
    /// # Errors
    /// End the attempt, as those of any closure.
    fn create(&self, record: &In, timestamp: Timestamp) -> Result<Self::Accumulator, BoxError>;

    /// Adds a record.
    ///
    /// # Errors
    /// A value that does not fit, for example.
    fn add(
        &self,
        accumulator: &mut Self::Accumulator,
        record: &In,
        timestamp: Timestamp,
    ) -> Result<(), BoxError>;

    /// Adds what another accumulator has: sessions that become one, or slices of a sliding window.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    fn merge(&self, accumulator: &mut Self::Accumulator, other: Self::Accumulator) -> Result<(), BoxError>;

    /// The result, whenever the window fires.
    fn result(&self, accumulator: &Self::Accumulator) -> Self::Output;
}
