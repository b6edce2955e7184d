//! Any iterator as a source.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use super::{BATCH_RECORDS, resume::Resume};
use crate::{
    error::BoxError,
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader, Split},
};

/// The items of the iterator that `make` returns, in order, read by one subtask.
///
/// Nothing is held in memory, and the chain's loop runs over the iterator itself. After a failure `make` is called
/// again and the items that were read are skipped with [`nth`](Iterator::nth): it must return the same items each
/// time. An endless iterator makes a job that never ends.
///
/// ```
/// use flow_runtime::connectors::collection::iterate;
/// let squares = iterate(|| (0..1_000_000u64).map(|n| n * n));
/// ```
pub fn iterate<F, I>(make: F) -> Iterate<F>
where
    F: Fn() -> I + Send + Sync + 'static,
    I: Iterator + Send + 'static,
{
    Iterate { make }
}

/// The source [`iterate`].
pub struct Iterate<F> {
    make: F,
}

impl<F> fmt::Debug for Iterate<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Iterate")
    }
}

/// How many items of the iterator have been read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterateSplit {
    read: u64,
}

impl Split for IterateSplit {
    fn id(&self) -> String {
        let mut id = String::new();
        self.write_id(&mut id);
        id
    }

    fn write_id(&self, to: &mut String) {
        to.push_str("iterator");
    }

    fn position(&self) -> String {
        format!("item {}", self.read)
    }
}

impl<F, I> Source for Iterate<F>
where
    F: Fn() -> I + Send + Sync + 'static,
    I: Iterator + Send + 'static,
{
    type Split = IterateSplit;
    type Batch = IterateBatch<I>;
    type Reader = IterateReader<I>;

    async fn discover(&self, _: bool) -> Result<Vec<IterateSplit>, BoxError> {
        Ok(vec![IterateSplit { read: 0 }])
    }

    async fn open(
        &self,
        _: SourceContext,
        mut splits: Vec<IterateSplit>,
    ) -> Result<IterateReader<I>, BoxError> {
        let split = splits.pop();
        let iter = split.as_ref().map(|split| {
            let mut iter = (self.make)();
            skip(&mut iter, split.read);
            iter
        });
        Ok(IterateReader { split, lent: Arc::new(Mutex::new(iter)) })
    }

    fn inline(&self) -> bool {
        true
    }
}

fn skip(iter: &mut impl Iterator, mut count: u64) {
    while count > 0 {
        let step = usize::try_from(count).unwrap_or(usize::MAX);
        if iter.nth(step - 1).is_none() {
            return;
        }
        count -= step as u64;
    }
}

#[diagnostic::do_not_recommend]
impl<F, I> Rewindable for Iterate<F>
where
    F: Fn() -> I + Send + Sync + 'static,
    I: Iterator + Send + 'static,
{
}

impl<F, I> Bounded for Iterate<F>
where
    F: Fn() -> I + Send + Sync + 'static,
    I: Iterator + Send + 'static,
{
}

/// The iterator when nobody iterates it; `None` once it has ended.
type Lent<I> = Arc<Mutex<Option<I>>>;

/// Reads an iterator.
pub struct IterateReader<I> {
    split: Option<IterateSplit>,
    lent: Lent<I>,
}

impl<I> fmt::Debug for IterateReader<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterateReader").field("split", &self.split).finish_non_exhaustive()
    }
}

impl<I: Iterator + Send + 'static> SourceReader for IterateReader<I> {
    type Split = IterateSplit;
    type Batch = IterateBatch<I>;

    fn batch(&self) -> IterateBatch<I> {
        IterateBatch { lent: self.lent.clone(), left: 0 }
    }

    async fn fetch(
        &mut self,
        fetched: &mut Fetched<IterateBatch<I>, IterateSplit>,
    ) -> Result<Progress, BoxError> {
        fetched.batch.left = 0;
        let Some(split) = &mut self.split else { return Ok(Progress::Finished) };
        if self.lent.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return Ok(Progress::Finished);
        }
        // Beyond the end for the last batch, which comes to the same when the items are skipped.
        split.read += BATCH_RECORDS;
        fetched.batch.left = BATCH_RECORDS;
        fetched.advanced.push(split.clone());
        Ok(Progress::More)
    }
}

/// The right to take the next items of the iterator.
pub struct IterateBatch<I> {
    lent: Lent<I>,
    left: u64,
}

impl<I> fmt::Debug for IterateBatch<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterateBatch").field("left", &self.left).finish_non_exhaustive()
    }
}

impl<I: Iterator + Send + 'static> Batch for IterateBatch<I> {
    type Item<'a> = I::Item;

    #[inline]
    fn records(&mut self) -> impl Iterator<Item = I::Item> {
        let IterateBatch { lent, left } = self;
        let iter = if *left > 0 { lent.lock().unwrap_or_else(PoisonError::into_inner).take() } else { None };
        // Without an iterator there is nothing to put back, neither here nor at its end.
        let next = Next { iter, left: *left };
        Resume::new(next, move |next| {
            *left = next.left;
            if next.iter.is_some() {
                *lent.lock().unwrap_or_else(PoisonError::into_inner) = next.iter;
            }
        })
    }
}

/// The next `left` items; drops the iterator when that ends before.
struct Next<I> {
    iter: Option<I>,
    left: u64,
}

impl<I: Iterator> Iterator for Next<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let item = self.iter.as_mut()?.next();
        if item.is_none() {
            self.iter = None;
        }
        item
    }
}
