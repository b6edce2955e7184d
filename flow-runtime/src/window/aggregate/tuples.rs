//! Several aggregates at once.

use super::Aggregate;
use crate::{error::BoxError, time::Timestamp};

/// Several aggregates, of which each gets its own part of the record: a tuple of aggregates over a tuple.
///
/// A tuple of aggregates without this gives the whole record to each of them.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{aggregate::{Itself, each, max, sum}, tumbling, windows};
///
/// // For records of type `(u64, u64)`.
/// let both = windows(tumbling(Duration::from_secs(10))).aggregate(each((sum(Itself), max(Itself))));
/// ```
#[must_use]
pub const fn each<A>(aggregates: A) -> Each<A> {
    Each(aggregates)
}

/// See [`each`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Each<A>(A);

macro_rules! tuples {
    ($( ($($a:ident $in:ident $i:tt),+) )*) => { $(
        impl<In, $($a: Aggregate<In>),+> Aggregate<In> for ($($a,)+) {
            type Accumulator = ($($a::Accumulator,)+);
            type Output = ($($a::Output,)+);

            #[inline(always)]
            fn create(&self, record: &In, timestamp: Timestamp) -> Result<Self::Accumulator, BoxError> {
                Ok(($(self.$i.create(record, timestamp)?,)+))
            }

            #[inline(always)]
            fn add(
                &self,
                accumulator: &mut Self::Accumulator,
                record: &In,
                timestamp: Timestamp,
            ) -> Result<(), BoxError> {
                $(self.$i.add(&mut accumulator.$i, record, timestamp)?;)+
                Ok(())
            }

            fn merge(
                &self,
                accumulator: &mut Self::Accumulator,
                other: Self::Accumulator,
            ) -> Result<(), BoxError> {
                $(self.$i.merge(&mut accumulator.$i, other.$i)?;)+
                Ok(())
            }

            fn result(&self, accumulator: &Self::Accumulator) -> Self::Output {
                ($(self.$i.result(&accumulator.$i),)+)
            }
        }

        impl<$($in, $a: Aggregate<$in>),+> Aggregate<($($in,)+)> for Each<($($a,)+)> {
            type Accumulator = ($($a::Accumulator,)+);
            type Output = ($($a::Output,)+);

            #[inline(always)]
            fn create(
                &self,
                record: &($($in,)+),
                timestamp: Timestamp,
            ) -> Result<Self::Accumulator, BoxError> {
                Ok(($(self.0.$i.create(&record.$i, timestamp)?,)+))
            }

            #[inline(always)]
            fn add(
                &self,
                accumulator: &mut Self::Accumulator,
                record: &($($in,)+),
                timestamp: Timestamp,
            ) -> Result<(), BoxError> {
                $(self.0.$i.add(&mut accumulator.$i, &record.$i, timestamp)?;)+
                Ok(())
            }

            fn merge(
                &self,
                accumulator: &mut Self::Accumulator,
                other: Self::Accumulator,
            ) -> Result<(), BoxError> {
                $(self.0.$i.merge(&mut accumulator.$i, other.$i)?;)+
                Ok(())
            }

            fn result(&self, accumulator: &Self::Accumulator) -> Self::Output {
                ($(self.0.$i.result(&accumulator.$i),)+)
            }
        }
    )* };
}

tuples! {
    (A InA 0, B InB 1)
    (A InA 0, B InB 1, C InC 2)
    (A InA 0, B InB 1, C InC 2, D InD 3)
    (A InA 0, B InB 1, C InC 2, D InD 3, E InE 4)
    (A InA 0, B InB 1, C InC 2, D InD 3, E InE 4, F InF 5)
    (A InA 0, B InB 1, C InC 2, D InD 3, E InE 4, F InF 5, G InG 6)
    (A InA 0, B InB 1, C InC 2, D InD 3, E InE 4, F InF 5, G InG 6, H InH 7)
}
