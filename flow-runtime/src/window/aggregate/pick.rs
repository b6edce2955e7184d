//! The earliest and the latest.

use super::{Aggregate, Project};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// The value of the earliest record by event time; of those of the same time, the one that came first.
#[must_use]
pub const fn first<F>(of: F) -> First<F> {
    First { of }
}

/// The value of the latest record by event time; of those of the same time, the one that came last.
#[must_use]
pub const fn last<F>(of: F) -> Last<F> {
    Last { of }
}

/// See [`first`].
#[derive(Clone, Copy, Debug, Default)]
pub struct First<F> {
    of: F,
}

/// See [`last`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Last<F> {
    of: F,
}

macro_rules! picks {
    ($($pick:ident $better:tt)*) => { $(
        impl<In, F: Project<In, Value: StateValue>> Aggregate<In> for $pick<F> {
            type Accumulator = (Timestamp, F::Value);
            type Output = F::Value;

            #[inline(always)]
            fn create(&self, record: &In, timestamp: Timestamp) -> Result<Self::Accumulator, BoxError> {
                Ok((timestamp, self.of.value(record)))
            }

            #[inline(always)]
            fn add(
                &self,
                picked: &mut Self::Accumulator,
                record: &In,
                timestamp: Timestamp,
            ) -> Result<(), BoxError> {
                if timestamp $better picked.0 {
                    *picked = (timestamp, self.of.value(record));
                }
                Ok(())
            }

            fn merge(
                &self,
                picked: &mut Self::Accumulator,
                other: Self::Accumulator,
            ) -> Result<(), BoxError> {
                if other.0 $better picked.0 {
                    *picked = other;
                }
                Ok(())
            }

            fn result(&self, picked: &Self::Accumulator) -> F::Value {
                picked.1.clone()
            }
        }
    )* };
}
picks!(First < Last >=);
