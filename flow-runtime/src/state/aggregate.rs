//! The rolling aggregates of a keyed stream: each updates the state of the record's key and yields the new value.

use super::{Key, StateValue, StoredKey, Table, ahead::Spot, hash};
use crate::error::BoxError;

/// What `.sum(..)` can add up. An overflow is an error, not a wrong number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be summed",
    note = "`.sum(..)` takes a closure that returns a number; for other types use `.fold(..)` or `.reduce(..)`, or implement `flow::Sum`"
)]
pub trait Sum: Sized {
    /// The sum of both, or `None` when it does not fit.
    fn plus(&self, other: &Self) -> Option<Self>;
}

macro_rules! sums {
    ($($t:ty),*) => { $(
        impl Sum for $t {
            #[inline(always)]
            fn plus(&self, other: &Self) -> Option<Self> { self.checked_add(*other) }
        }
    )* };
}
sums!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, std::time::Duration);

impl Sum for f32 {
    #[inline(always)]
    fn plus(&self, other: &Self) -> Option<Self> {
        Some(self + other)
    }
}

impl Sum for f64 {
    #[inline(always)]
    fn plus(&self, other: &Self) -> Option<Self> {
        Some(self + other)
    }
}

impl<K: StoredKey, V: StateValue> Table<K, V> {
    /// Adds `value` to the key's sum.
    ///
    /// # Errors
    /// When the sum overflows.
    #[inline(always)]
    pub fn add<Q: Key<Stored = K>>(&mut self, key: Q, value: V) -> Result<(Q, V), BoxError>
    where
        V: Sum,
    {
        self.add_at(Spot::from(hash(&key)), key, value)
    }

    /// As [`add`](Self::add), of a key that has come by [`arrive`](Self::arrive).
    ///
    /// # Errors
    /// When the sum overflows.
    #[inline(always)]
    pub fn add_at<Q: Key<Stored = K>>(&mut self, spot: Spot, key: Q, value: V) -> Result<(Q, V), BoxError>
    where
        V: Sum,
    {
        let total = self.merge(spot, &key, value, |sum, value| {
            *sum = sum.plus(&value).ok_or_else(overflow::<V>)?;
            Ok(())
        })?;
        Ok((key, total))
    }

    /// Keeps the smaller of `value` and the key's minimum. A value that does not compare (NaN) changes nothing,
    /// unless it is the first.
    #[inline(always)]
    pub fn keep_min<Q: Key<Stored = K>>(&mut self, key: Q, value: V) -> Result<(Q, V), BoxError>
    where
        V: PartialOrd,
    {
        self.keep_min_at(Spot::from(hash(&key)), key, value)
    }

    /// As [`keep_min`](Self::keep_min), of a key that has come by [`arrive`](Self::arrive).
    #[inline(always)]
    pub fn keep_min_at<Q: Key<Stored = K>>(
        &mut self,
        spot: Spot,
        key: Q,
        value: V,
    ) -> Result<(Q, V), BoxError>
    where
        V: PartialOrd,
    {
        let least = self.replace(spot, &key, value, |least, value| value < least);
        Ok((key, least))
    }

    /// Keeps the larger of `value` and the key's maximum. A value that does not compare (NaN) changes nothing,
    /// unless it is the first.
    #[inline(always)]
    pub fn keep_max<Q: Key<Stored = K>>(&mut self, key: Q, value: V) -> Result<(Q, V), BoxError>
    where
        V: PartialOrd,
    {
        self.keep_max_at(Spot::from(hash(&key)), key, value)
    }

    /// As [`keep_max`](Self::keep_max), of a key that has come by [`arrive`](Self::arrive).
    #[inline(always)]
    pub fn keep_max_at<Q: Key<Stored = K>>(
        &mut self,
        spot: Spot,
        key: Q,
        value: V,
    ) -> Result<(Q, V), BoxError>
    where
        V: PartialOrd,
    {
        let greatest = self.replace(spot, &key, value, |greatest, value| value > greatest);
        Ok((key, greatest))
    }
}

impl<K: StoredKey> Table<K, u64> {
    /// Adds one to the key's count.
    ///
    /// # Errors
    /// Never in practice: a count that overflows.
    #[inline(always)]
    pub fn tally<Q: Key<Stored = K>>(&mut self, key: Q) -> Result<(Q, u64), BoxError> {
        self.add(key, 1)
    }

    /// As [`tally`](Self::tally), of a key that has come by [`arrive`](Self::arrive).
    ///
    /// # Errors
    /// As there.
    #[inline(always)]
    pub fn tally_at<Q: Key<Stored = K>>(&mut self, spot: Spot, key: Q) -> Result<(Q, u64), BoxError> {
        self.add_at(spot, key, 1)
    }
}

#[cold]
pub(crate) fn overflow<V>() -> BoxError {
    format!("the sum does not fit into `{}`: sum a wider type", std::any::type_name::<V>()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_borrowed_key() {
        let mut table = Table::new();
        assert_eq!(table.add("a", 1u64).unwrap(), ("a", 1));
        assert_eq!(table.add("b", 5).unwrap(), ("b", 5));
        assert_eq!(table.add("a", 2).unwrap(), ("a", 3));
    }

    #[test]
    fn an_overflow_is_an_error() {
        let mut table = Table::new();
        table.add(1u8, 200u8).unwrap();
        assert!(table.add(1u8, 56u8).unwrap_err().to_string().contains("does not fit into `u8`"));
    }

    #[test]
    fn nan_does_not_displace_a_number() {
        let mut table = Table::new();
        table.keep_max(1u8, 2.0f64).unwrap();
        assert_eq!(table.keep_max(1u8, f64::NAN).unwrap(), (1, 2.0));
        assert_eq!(table.keep_max(1u8, 3.0).unwrap(), (1, 3.0));
    }
}
