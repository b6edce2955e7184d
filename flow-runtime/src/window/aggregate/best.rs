//! The record with the smallest or largest value.

use super::{Aggregate, Project};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// The record with the smallest value; of those with the same, the earliest by event time. A value that does not
/// compare (NaN) changes nothing, unless it is the first.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{aggregate::min_by, tumbling, windows};
///
/// #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// struct Offer { shop: u64, cents: u64 }
/// let cheapest = windows(tumbling(Duration::from_secs(60))).aggregate(min_by(|offer: &Offer| offer.cents));
/// ```
#[must_use]
pub const fn min_by<F>(by: F) -> MinBy<By<F>> {
    MinBy(By(by))
}

/// The record with the largest value; of those with the same, the earliest by event time. A value that does not compare
/// (NaN) changes nothing, unless it is the first.
#[must_use]
pub const fn max_by<F>(by: F) -> MaxBy<By<F>> {
    MaxBy(By(by))
}

/// See [`min_by`].
#[derive(Clone, Copy, Debug)]
pub struct MinBy<P>(P);

/// See [`max_by`].
#[derive(Clone, Copy, Debug)]
pub struct MaxBy<P>(P);

/// A record and what it is compared by.
pub trait Ranked<In> {
    /// What it is compared by.
    type Value: PartialOrd + StateValue;
    /// The record.
    type Record: StateValue;
    /// What it is compared by.
    fn value(&self, record: &In) -> Self::Value;
    /// The record.
    fn record(&self, record: &In) -> Self::Record;
}

/// Records compared by what a closure makes of them.
#[derive(Clone, Copy, Debug)]
pub struct By<F>(F);

impl<In: StateValue, F: Project<In, Value: PartialOrd + StateValue>> Ranked<In> for By<F> {
    type Value = F::Value;
    type Record = In;
    #[inline(always)]
    fn value(&self, record: &In) -> F::Value {
        self.0.value(record)
    }
    fn record(&self, record: &In) -> In {
        record.clone()
    }
}

/// Pairs of what is compared and the record.
#[derive(Clone, Copy, Debug)]
pub struct Paired;

impl<B: PartialOrd + StateValue, T: StateValue> Ranked<(B, T)> for Paired {
    type Value = B;
    type Record = T;
    #[inline(always)]
    fn value(&self, record: &(B, T)) -> B {
        record.0.clone()
    }
    fn record(&self, record: &(B, T)) -> T {
        record.1.clone()
    }
}

macro_rules! best {
    ($($best:ident $better:tt)*) => { $(
        impl $best<Paired> {
            pub(in crate::window) const fn paired() -> Self {
                $best(Paired)
            }
        }

        impl<In, P: Ranked<In>> Aggregate<In> for $best<P> {
            type Accumulator = (P::Value, Timestamp, P::Record);
            type Output = P::Record;

            fn create(&self, record: &In, timestamp: Timestamp) -> Result<Self::Accumulator, BoxError> {
                Ok((self.0.value(record), timestamp, self.0.record(record)))
            }

            #[inline]
            fn add(
                &self,
                best: &mut Self::Accumulator,
                record: &In,
                timestamp: Timestamp,
            ) -> Result<(), BoxError> {
                let value = self.0.value(record);
                if value $better best.0 || (value == best.0 && timestamp < best.1) {
                    *best = (value, timestamp, self.0.record(record));
                }
                Ok(())
            }

            fn merge(&self, best: &mut Self::Accumulator, other: Self::Accumulator) -> Result<(), BoxError> {
                if other.0 $better best.0 || (other.0 == best.0 && other.1 < best.1) {
                    *best = other;
                }
                Ok(())
            }

            fn result(&self, best: &Self::Accumulator) -> P::Record {
                best.2.clone()
            }
        }
    )* };
}
best!(MinBy<MaxBy>);
