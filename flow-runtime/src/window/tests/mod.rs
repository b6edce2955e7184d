//! The operator against the edge cases of event time, each with its value, and against a naive evaluation.

mod aggregates;
mod by_clock;
mod cases;
mod evictors;
mod many;
pub(crate) mod oracle;
pub(crate) mod restore;
mod sessions;
mod triggers;

use std::time::Duration;

use super::{Bounds, Definition, Window, Windows, WindowsMut, aggregate::Itself, aggregate::Total};
use crate::{
    record::Lend,
    state::{Keyed, StoredKey},
    time::{Timestamp, Watermark},
};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Sums of numbers.
pub(super) const SUM: Total<Itself> = super::aggregate::sum(Itself);

pub(super) fn operator<S: Definition<u32, i64>>(spec: S) -> Windows<u32, i64, S> {
    Windows::detached(spec).unwrap()
}

/// A window's start and end, and its result.
pub(super) type Row<R> = (i64, i64, R);

pub(super) fn row<R>(window: &impl Bounds, result: R) -> Row<R> {
    let Window { start, end } = window.span();
    (start.as_millis(), end.as_millis(), result)
}

/// One key's worth of an operator.
pub(super) trait Drive<R> {
    /// Puts a record in, of which the window must not be over. Returns what has fired.
    fn put(&self, millis: i64, record: i64) -> Vec<Row<R>>;
    /// Puts a record in that is late for all of its windows.
    fn put_late(&self, millis: i64, record: i64);
    fn watermark_at(&self, millis: i64) -> Vec<Row<R>>;
    fn clock(&self, millis: i64) -> Vec<Row<R>>;
}

pub(super) fn rows<K: StoredKey, In: Clone, S: Definition<K, In>>(
    windows: &mut WindowsMut<'_, K, In, S>,
) -> Vec<Row<S::Output>> {
    windows
        .fired()
        .map(|fired| {
            assert_eq!(fired.timestamp(), fired.window.max_timestamp());
            row(&fired.window, fired.result)
        })
        .collect()
}

impl<S: Definition<u32, i64>> Drive<S::Output> for Windows<u32, i64, S> {
    fn put(&self, millis: i64, record: i64) -> Vec<Row<S::Output>> {
        let mut windows = self.borrow_mut();
        assert_eq!(windows.add(&1u32, at(millis), record).unwrap(), None, "late");
        rows(&mut windows)
    }

    fn put_late(&self, millis: i64, record: i64) {
        let mut windows = self.borrow_mut();
        let dropped = windows.counters().late_dropped;
        assert_eq!(windows.add(&1u32, at(millis), record).unwrap(), Some(record));
        assert_eq!(windows.counters().late_dropped, dropped + 1);
        assert!(rows(&mut windows).is_empty());
    }

    fn watermark_at(&self, millis: i64) -> Vec<Row<S::Output>> {
        let mut windows = self.borrow_mut();
        windows.advance(Watermark::new(at(millis))).unwrap();
        rows(&mut windows)
    }

    fn clock(&self, millis: i64) -> Vec<Row<S::Output>> {
        let mut windows = self.borrow_mut();
        windows.advance_processing_time(at(millis)).unwrap();
        rows(&mut windows)
    }
}

pub(super) const END: i64 = i64::MAX;

/// Whether no key has any state.
pub(super) fn is_empty<S: Definition<u32, i64>>(windows: &Windows<u32, i64, S>) -> bool {
    windows.borrow_mut().table.hashed().next().is_none()
}

pub(crate) fn lent<K: for<'a> Lend<Lent<'a> = K>>(mut slot: crate::record::Slot<K>) -> K {
    slot.lend()
}
