//! How many different.

use std::collections::BTreeSet;

use super::{Aggregate, Project};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// How many different values the records have. Exact: the window holds every value once.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{aggregate::distinct, tumbling, windows};
///
/// struct View { user: u64 }
/// let visitors = windows(tumbling(Duration::from_secs(3600))).aggregate(distinct(|view: &View| view.user));
/// ```
#[must_use]
pub const fn distinct<F>(of: F) -> Distinct<F> {
    Distinct { of }
}

/// See [`distinct`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Distinct<F> {
    of: F,
}

impl<In, F: Project<In, Value: Ord + StateValue>> Aggregate<In> for Distinct<F> {
    type Accumulator = BTreeSet<F::Value>;
    type Output = u64;

    fn create(&self, record: &In, _: Timestamp) -> Result<Self::Accumulator, BoxError> {
        Ok(BTreeSet::from([self.of.value(record)]))
    }

    #[inline]
    fn add(&self, values: &mut Self::Accumulator, record: &In, _: Timestamp) -> Result<(), BoxError> {
        values.insert(self.of.value(record));
        Ok(())
    }

    fn merge(&self, values: &mut Self::Accumulator, other: Self::Accumulator) -> Result<(), BoxError> {
        values.extend(other);
        Ok(())
    }

    fn result(&self, values: &Self::Accumulator) -> u64 {
        values.len() as u64
    }
}
