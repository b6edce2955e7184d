//! What to do with a record that does not parse.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// How many invalid rows a source has skipped, over all its subtasks in this process. Cheap to clone; see
/// `skipped` of [`FileSource`](super::FileSource).
#[derive(Clone, Debug, Default)]
pub struct Skipped(Arc<AtomicU64>);

impl Skipped {
    /// How many so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Counts a row and says so in the log: the first, and then ever more seldom.
    pub(super) fn add(&self, place: &str, cause: &str) {
        let count = self.0.fetch_add(1, Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(count, "skipped an invalid row: {place}: {cause}");
        } else {
            tracing::debug!(count, "skipped an invalid row: {place}: {cause}");
        }
    }
}

/// What a format does with invalid rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Invalid {
    /// Skips them, instead of failing.
    pub(super) skip: bool,
    pub(super) skipped: Skipped,
}

/// Rows of a batch that gave no record, so that the `index`-th record can be traced to its row.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<u64>);

impl Gaps {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, row: u64) {
        self.0.push(row);
    }

    /// The row of the `index`-th record, both from 0.
    pub(super) fn row(&self, index: u64) -> u64 {
        self.0.iter().fold(index, |row, &gap| row + u64::from(gap <= row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_shift_what_follows() {
        let gaps = Gaps(vec![0, 2, 3]);
        assert_eq!((0..3).map(|index| gaps.row(index)).collect::<Vec<_>>(), [1, 4, 5]);
    }
}
