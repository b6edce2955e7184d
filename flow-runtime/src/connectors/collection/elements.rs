//! The elements of a vector.

use std::{collections::VecDeque, fmt, ops, sync::Arc};

use super::{
    range::{RangeReader, RangeSplit, parts},
    resume::Resume,
};
use crate::{
    error::BoxError,
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader},
};

/// The elements of a vector, dealt out among the subtasks in parts; each part comes in order. Every record is a
/// clone of an element.
///
/// ```
/// use flow_runtime::connectors::collection::collection;
/// let words = collection(vec!["to", "be", "or", "not", "to", "be"]);
/// ```
pub fn collection<T: Clone + Send + Sync + 'static>(elements: impl Into<Vec<T>>) -> Elements<T> {
    Elements { elements: Arc::new(elements.into()) }
}

/// The source [`collection`].
pub struct Elements<T> {
    elements: Arc<Vec<T>>,
}

impl<T> fmt::Debug for Elements<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements").field("len", &self.elements.len()).finish()
    }
}

impl<T: Clone + Send + Sync + 'static> Source for Elements<T> {
    type Split = RangeSplit;
    type Batch = ElementsBatch<T>;
    type Reader = ElementsReader<T>;

    async fn discover(&self, _: bool) -> Result<Vec<RangeSplit>, BoxError> {
        Ok(parts(&(0..self.elements.len() as u64)))
    }

    async fn open(&self, _: SourceContext, splits: Vec<RangeSplit>) -> Result<ElementsReader<T>, BoxError> {
        Ok(ElementsReader { elements: self.elements.clone(), splits: splits.into() })
    }

    fn inline(&self) -> bool {
        true
    }
}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + 'static> Rewindable for Elements<T> {}

impl<T: Clone + Send + Sync + 'static> Bounded for Elements<T> {}

/// Reads parts of a vector.
pub struct ElementsReader<T> {
    elements: Arc<Vec<T>>,
    splits: VecDeque<RangeSplit>,
}

impl<T> fmt::Debug for ElementsReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElementsReader").field("splits", &self.splits).finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> SourceReader for ElementsReader<T> {
    type Split = RangeSplit;
    type Batch = ElementsBatch<T>;

    fn batch(&self) -> ElementsBatch<T> {
        ElementsBatch { elements: self.elements.clone(), some: 0..0 }
    }

    async fn fetch(
        &mut self,
        fetched: &mut Fetched<ElementsBatch<T>, RangeSplit>,
    ) -> Result<Progress, BoxError> {
        let Some((numbers, split)) = RangeReader::advance(&mut self.splits) else {
            fetched.batch.some = 0..0;
            return Ok(Progress::Finished);
        };
        // A restored position may lie beyond a vector that has become shorter.
        let within = |index| usize::try_from(index).unwrap_or(usize::MAX).min(self.elements.len());
        fetched.batch.some = within(numbers.start)..within(numbers.end);
        fetched.advanced.push(split);
        Ok(Progress::More)
    }
}

/// Some consecutive elements.
pub struct ElementsBatch<T> {
    elements: Arc<Vec<T>>,
    some: ops::Range<usize>,
}

impl<T> fmt::Debug for ElementsBatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElementsBatch").field("some", &self.some).finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> Batch for ElementsBatch<T> {
    type Item<'a> = T;

    #[inline]
    fn records(&mut self) -> impl Iterator<Item = T> {
        let ElementsBatch { elements, some } = self;
        let end = some.end;
        let slice = elements[some.clone()].iter();
        Resume::new(slice, move |rest| some.start = end - rest.len()).cloned()
    }
}
