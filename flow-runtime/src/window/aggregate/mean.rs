//! The mean.

use super::{Aggregate, Project};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// The mean of a value of the records. Integers are added up exactly, so that the order of the records does not matter.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{aggregate::mean, tumbling, windows};
///
/// struct Measured { celsius: f64 }
/// let hourly = windows(tumbling(Duration::from_secs(3600))).aggregate(mean(|m: &Measured| m.celsius));
/// ```
#[must_use]
pub const fn mean<F>(of: F) -> Mean<F> {
    Mean { of }
}

/// See [`mean`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean<F> {
    of: F,
}

/// What has a mean.
#[diagnostic::on_unimplemented(
    message = "there is no mean of `{Self}`",
    note = "take a number: an integer up to 64 bits, `f32` or `f64`"
)]
pub trait Number {
    /// What adds up values without loss, or nearly so.
    type Total: StateValue;
    /// The value as a total.
    fn total(self) -> Self::Total;
    /// Adds one to another.
    fn add(total: &mut Self::Total, other: Self::Total);
    /// The mean of so many.
    fn mean(total: &Self::Total, count: u64) -> f64;
}

macro_rules! numbers {
    ($total:ty: $($t:ty)*) => { $(
        impl Number for $t {
            type Total = $total;
            #[inline(always)]
            fn total(self) -> $total { <$total>::from(self) }
            #[inline(always)]
            fn add(total: &mut $total, other: $total) { *total += other; }
            fn mean(total: &$total, count: u64) -> f64 { *total as f64 / count as f64 }
        }
    )* };
}
// 2^64 values of 64 bits do not overflow 128 bits.
numbers!(i128: i8 i16 i32 i64 u8 u16 u32 u64);
numbers!(f64: f32 f64);

impl<In, F: Project<In, Value: Number>> Aggregate<In> for Mean<F> {
    type Accumulator = (<F::Value as Number>::Total, u64);
    type Output = f64;

    #[inline(always)]
    fn create(&self, record: &In, _: Timestamp) -> Result<Self::Accumulator, BoxError> {
        Ok((self.of.value(record).total(), 1))
    }

    #[inline(always)]
    fn add(&self, (total, count): &mut Self::Accumulator, record: &In, _: Timestamp) -> Result<(), BoxError> {
        F::Value::add(total, self.of.value(record).total());
        *count += 1;
        Ok(())
    }

    fn merge(
        &self,
        (total, count): &mut Self::Accumulator,
        other: Self::Accumulator,
    ) -> Result<(), BoxError> {
        F::Value::add(total, other.0);
        *count += other.1;
        Ok(())
    }

    fn result(&self, (total, count): &Self::Accumulator) -> f64 {
        F::Value::mean(total, *count)
    }
}
