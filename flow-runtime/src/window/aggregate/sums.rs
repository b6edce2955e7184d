//! How many, and how much.

use super::{Aggregate, Project};
use crate::{
    error::BoxError,
    state::{StateValue, Sum, overflow},
    time::Timestamp,
};

/// The number of records.
#[must_use]
pub const fn count() -> Count {
    Count
}

/// See [`count`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Count;

impl<In> Aggregate<In> for Count {
    type Accumulator = u64;
    type Output = u64;

    #[inline(always)]
    fn create(&self, _: &In, _: Timestamp) -> Result<u64, BoxError> {
        Ok(1)
    }

    #[inline(always)]
    fn add(&self, count: &mut u64, _: &In, _: Timestamp) -> Result<(), BoxError> {
        *count += 1;
        Ok(())
    }

    fn merge(&self, count: &mut u64, other: u64) -> Result<(), BoxError> {
        *count += other;
        Ok(())
    }

    fn result(&self, count: &u64) -> u64 {
        *count
    }
}

/// The sum of a value of the records. An overflow is an error, not a wrong number.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{aggregate::{count, sum}, tumbling, windows};
///
/// struct Payment { cents: i64 }
/// let per_minute = windows(tumbling(Duration::from_secs(60)))
///     .aggregate((count(), sum(|payment: &Payment| payment.cents)));
/// ```
#[must_use]
pub const fn sum<F>(of: F) -> Total<F> {
    Total { of }
}

/// See [`sum`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Total<F> {
    of: F,
}

fn plus<V: Sum>(total: &mut V, value: &V) -> Result<(), BoxError> {
    *total = total.plus(value).ok_or_else(overflow::<V>)?;
    Ok(())
}

impl<In, F: Project<In, Value: Sum + StateValue>> Aggregate<In> for Total<F> {
    type Accumulator = F::Value;
    type Output = F::Value;

    #[inline(always)]
    fn create(&self, record: &In, _: Timestamp) -> Result<F::Value, BoxError> {
        Ok(self.of.value(record))
    }

    #[inline(always)]
    fn add(&self, total: &mut F::Value, record: &In, _: Timestamp) -> Result<(), BoxError> {
        plus(total, &self.of.value(record))
    }

    fn merge(&self, total: &mut F::Value, other: F::Value) -> Result<(), BoxError> {
        plus(total, &other)
    }

    fn result(&self, total: &F::Value) -> F::Value {
        total.clone()
    }
}
