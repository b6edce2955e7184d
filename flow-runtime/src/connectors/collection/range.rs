//! A range of numbers, read in parallel.

use std::{collections::VecDeque, fmt::Write, ops};

use serde::{Deserialize, Serialize};

use super::{BATCH_RECORDS, SPLITS, resume::Resume};
use crate::{
    error::BoxError,
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader, Split},
};

/// The numbers of `numbers`, dealt out among the subtasks in parts; each part comes in order. No record is held in
/// memory.
///
/// ```
/// use flow_runtime::connectors::collection;
/// let numbers = collection::range(0..1_000_000_000);
/// ```
#[must_use]
pub fn range(numbers: ops::Range<u64>) -> Range {
    Range { numbers }
}

/// The source [`range`].
#[derive(Clone, Debug)]
pub struct Range {
    numbers: ops::Range<u64>,
}

/// A part of a range, and the next number in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSplit {
    pub(super) start: u64,
    pub(super) next: u64,
    pub(super) end: u64,
}

impl Split for RangeSplit {
    fn id(&self) -> String {
        let mut id = String::new();
        self.write_id(&mut id);
        id
    }

    fn write_id(&self, to: &mut String) {
        // After a restore the parts come in the order of these.
        let _ = write!(to, "{:020}..{:020}", self.start, self.end);
    }

    fn position(&self) -> String {
        format!("number {}", self.next)
    }

    fn is_finished(&self) -> bool {
        self.next >= self.end
    }
}

/// Cuts a range into parts of about equal size.
pub(super) fn parts(numbers: &ops::Range<u64>) -> Vec<RangeSplit> {
    let len = numbers.end.saturating_sub(numbers.start);
    let parts = len.min(SPLITS);
    let edge = |i| numbers.start + (u128::from(len) * u128::from(i) / u128::from(parts)) as u64;
    (0..parts).map(|i| RangeSplit { start: edge(i), next: edge(i), end: edge(i + 1) }).collect()
}

impl Source for Range {
    type Split = RangeSplit;
    type Batch = RangeBatch;
    type Reader = RangeReader;

    async fn discover(&self, _: bool) -> Result<Vec<RangeSplit>, BoxError> {
        Ok(parts(&self.numbers))
    }

    async fn open(&self, _: SourceContext, splits: Vec<RangeSplit>) -> Result<RangeReader, BoxError> {
        Ok(RangeReader { splits: splits.into() })
    }

    fn inline(&self) -> bool {
        true
    }
}

#[diagnostic::do_not_recommend]
impl Rewindable for Range {}

impl Bounded for Range {}

/// Reads parts of a range.
#[derive(Debug)]
pub struct RangeReader {
    splits: VecDeque<RangeSplit>,
}

impl RangeReader {
    /// The next numbers of these parts: a range, the split behind it, and whether there are more.
    pub(super) fn advance(splits: &mut VecDeque<RangeSplit>) -> Option<(ops::Range<u64>, RangeSplit)> {
        while let Some(split) = splits.front_mut() {
            if split.next < split.end {
                let numbers = split.next..split.end.min(split.next.saturating_add(BATCH_RECORDS));
                split.next = numbers.end;
                return Some((numbers, split.clone()));
            }
            splits.pop_front();
        }
        None
    }
}

impl SourceReader for RangeReader {
    type Split = RangeSplit;
    type Batch = RangeBatch;

    fn batch(&self) -> RangeBatch {
        RangeBatch { numbers: 0..0 }
    }

    async fn fetch(&mut self, fetched: &mut Fetched<RangeBatch, RangeSplit>) -> Result<Progress, BoxError> {
        let Some((numbers, split)) = RangeReader::advance(&mut self.splits) else {
            fetched.batch.numbers = 0..0;
            return Ok(Progress::Finished);
        };
        fetched.batch.numbers = numbers;
        fetched.advanced.push(split);
        Ok(Progress::More)
    }
}

/// Some consecutive numbers.
#[derive(Debug)]
pub struct RangeBatch {
    numbers: ops::Range<u64>,
}

impl Batch for RangeBatch {
    type Item<'a> = u64;

    #[inline]
    fn records(&mut self) -> impl Iterator<Item = u64> {
        Resume::new(self.numbers.clone(), |rest| self.numbers = rest)
    }
}
