//! The smallest and the largest.

use super::{Aggregate, Project};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// The smallest value of the records. A value that does not compare (NaN) changes nothing, unless it is the first.
#[must_use]
pub const fn min<F>(of: F) -> Min<F> {
    Min { of }
}

/// The largest value of the records. A value that does not compare (NaN) changes nothing, unless it is the first.
///
/// To get the record with the largest value, take both: `max(|bid: &Bid| (bid.price, bid.id))`.
#[must_use]
pub const fn max<F>(of: F) -> Max<F> {
    Max { of }
}

/// See [`min`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Min<F> {
    of: F,
}

/// See [`max`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Max<F> {
    of: F,
}

macro_rules! extremes {
    ($($extreme:ident $better:tt)*) => { $(
        impl<In, F: Project<In, Value: PartialOrd + StateValue>> Aggregate<In> for $extreme<F> {
            type Accumulator = F::Value;
            type Output = F::Value;

            #[inline(always)]
            fn create(&self, record: &In, _: Timestamp) -> Result<F::Value, BoxError> {
                Ok(self.of.value(record))
            }

            #[inline(always)]
            fn add(&self, best: &mut F::Value, record: &In, _: Timestamp) -> Result<(), BoxError> {
                let value = self.of.value(record);
                if value $better *best {
                    *best = value;
                }
                Ok(())
            }

            fn merge(&self, best: &mut F::Value, other: F::Value) -> Result<(), BoxError> {
                if other $better *best {
                    *best = other;
                }
                Ok(())
            }

            fn result(&self, best: &F::Value) -> F::Value {
                best.clone()
            }
        }
    )* };
}
extremes!(Min<Max>);

/// The `n` largest values of the records, the largest first.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{aggregate::top_n, tumbling, windows};
///
/// struct Bid { price: u64, bidder: u64 }
/// let highest = windows(tumbling(Duration::from_secs(10)))
///     .aggregate(top_n(3, |bid: &Bid| (bid.price, bid.bidder)));
/// ```
#[must_use]
pub const fn top_n<F>(n: usize, of: F) -> TopN<F> {
    TopN { n, of }
}

/// See [`top_n`].
#[derive(Clone, Copy, Debug, Default)]
pub struct TopN<F> {
    n: usize,
    of: F,
}

impl<F> TopN<F> {
    fn insert<V: Ord>(&self, top: &mut Vec<V>, value: V) {
        if top.len() == self.n && top.last().is_none_or(|least| *least >= value) {
            return;
        }
        let at = top.partition_point(|other| *other >= value);
        top.truncate(self.n - 1);
        top.insert(at, value);
    }
}

impl<In, F: Project<In, Value: Ord + StateValue>> Aggregate<In> for TopN<F> {
    /// The largest first.
    type Accumulator = Vec<F::Value>;
    type Output = Vec<F::Value>;

    fn create(&self, record: &In, _: Timestamp) -> Result<Self::Accumulator, BoxError> {
        let mut top = Vec::new();
        self.insert(&mut top, self.of.value(record));
        Ok(top)
    }

    #[inline]
    fn add(&self, top: &mut Self::Accumulator, record: &In, _: Timestamp) -> Result<(), BoxError> {
        self.insert(top, self.of.value(record));
        Ok(())
    }

    fn merge(&self, top: &mut Self::Accumulator, other: Self::Accumulator) -> Result<(), BoxError> {
        other.into_iter().for_each(|value| self.insert(top, value));
        Ok(())
    }

    fn result(&self, top: &Self::Accumulator) -> Self::Output {
        top.clone()
    }
}
