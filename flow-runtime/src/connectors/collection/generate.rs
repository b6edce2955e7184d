//! Made-up records at a steady rate.

use std::{
    fmt::{self, Write},
    marker::PhantomData,
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{BATCH_RECORDS, resume::Resume};
use crate::{
    error::BoxError,
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader, Split},
};

/// The shortest wait, so that a high rate comes in batches.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// `make(0)`, `make(1)`, .. at `rate` records per second over all subtasks, without end unless
/// [`take`](Generate::take) says so.
///
/// A job that falls behind the rate catches up as fast as it can, so that the time a record waits is seen.
///
/// ```
/// use flow_runtime::connectors::collection::generate;
/// let clicks = generate(1000, |i| (i % 10, format!("/page/{}", i % 7))).splits(4);
/// ```
pub fn generate<F, T>(rate: u64, make: F) -> Generate<F>
where
    F: Fn(u64) -> T + Send + Sync + 'static,
    T: 'static,
{
    Generate { rate: rate.max(1), make: Arc::new(make), splits: 1, end: None, ends: PhantomData }
}

/// Has no end.
#[derive(Clone, Copy, Debug)]
pub enum Endless {}

/// Ends after a number of records.
#[derive(Clone, Copy, Debug)]
pub enum Ending {}

/// The source [`generate`].
pub struct Generate<F, E = Endless> {
    rate: u64,
    make: Arc<F>,
    splits: u64,
    end: Option<u64>,
    ends: PhantomData<fn() -> E>,
}

impl<F, E> Generate<F, E> {
    /// How many subtasks can take part, 1 unless set. Each of `n` generates every `n`-th record at an `n`-th of the
    /// rate.
    #[must_use]
    pub fn splits(mut self, n: u64) -> Self {
        self.splits = n.max(1);
        self
    }

    /// Ends after `total` records.
    #[must_use]
    pub fn take(self, total: u64) -> Generate<F, Ending> {
        let Generate { rate, make, splits, .. } = self;
        Generate { rate, make, splits, end: Some(total), ends: PhantomData }
    }
}

impl<F, E> fmt::Debug for Generate<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generate").field("rate", &self.rate).field("end", &self.end).finish_non_exhaustive()
    }
}

/// Every `step`-th record, and the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerateSplit {
    first: u64,
    step: u64,
    next: u64,
}

impl Split for GenerateSplit {
    fn id(&self) -> String {
        let mut id = String::new();
        self.write_id(&mut id);
        id
    }

    fn write_id(&self, to: &mut String) {
        let _ = write!(to, "{} of {}", self.first, self.step);
    }

    fn position(&self) -> String {
        format!("record {}", self.next)
    }
}

impl<F, T, E> Source for Generate<F, E>
where
    F: Fn(u64) -> T + Send + Sync + 'static,
    T: 'static,
    E: 'static,
{
    type Split = GenerateSplit;
    type Batch = GenerateBatch<F>;
    type Reader = GenerateReader<F>;

    async fn discover(&self, _: bool) -> Result<Vec<GenerateSplit>, BoxError> {
        let step = self.splits;
        Ok((0..step).map(|first| GenerateSplit { first, step, next: first }).collect())
    }

    async fn open(
        &self,
        _: SourceContext,
        splits: Vec<GenerateSplit>,
    ) -> Result<GenerateReader<F>, BoxError> {
        let splits = splits.into_iter().map(|split| Paced { began_at: split.next, split }).collect();
        Ok(GenerateReader {
            rate: self.rate,
            make: self.make.clone(),
            end: self.end.unwrap_or(u64::MAX),
            splits,
            began: None,
        })
    }
}

#[diagnostic::do_not_recommend]
impl<F, T, E> Rewindable for Generate<F, E>
where
    F: Fn(u64) -> T + Send + Sync + 'static,
    T: 'static,
    E: 'static,
{
}

impl<F, T> Bounded for Generate<F, Ending>
where
    F: Fn(u64) -> T + Send + Sync + 'static,
    T: 'static,
{
}

/// Generates records when they are due.
pub struct GenerateReader<F> {
    rate: u64,
    make: Arc<F>,
    end: u64,
    splits: Vec<Paced>,
    /// When the first record of each split was due.
    began: Option<Instant>,
}

/// A split, and where it stood when this reader began.
struct Paced {
    split: GenerateSplit,
    began_at: u64,
}

impl<F> fmt::Debug for GenerateReader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenerateReader").field("rate", &self.rate).finish_non_exhaustive()
    }
}

impl Paced {
    /// How long after the beginning the next record is due. Record `began_at + k` is due `k / rate` after it, plus
    /// the split's place in the round.
    fn due(&self, rate: u64) -> Duration {
        let GenerateSplit { first, next, .. } = self.split;
        let nanos = u128::from(next - self.began_at + first) * 1_000_000_000 / u128::from(rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many records are due after `elapsed`.
    fn count(&self, rate: u64, elapsed: Duration, end: u64) -> u64 {
        let GenerateSplit { first, next, step } = self.split;
        let reached =
            (elapsed.as_nanos() * u128::from(rate) / 1_000_000_000).min(u128::from(u64::MAX)) as u64;
        let Some(reached) = reached.checked_sub(first) else { return 0 };
        let reached = reached.saturating_add(self.began_at).saturating_add(1).min(end);
        reached.saturating_sub(next).div_ceil(step).min(BATCH_RECORDS)
    }
}

impl<F, T> SourceReader for GenerateReader<F>
where
    F: Fn(u64) -> T + Send + Sync + 'static,
    T: 'static,
{
    type Split = GenerateSplit;
    type Batch = GenerateBatch<F>;

    fn batch(&self) -> GenerateBatch<F> {
        GenerateBatch { make: self.make.clone(), next: 0, step: 1, left: 0 }
    }

    async fn fetch(
        &mut self,
        fetched: &mut Fetched<GenerateBatch<F>, GenerateSplit>,
    ) -> Result<Progress, BoxError> {
        fetched.batch.left = 0;
        let began = *self.began.get_or_insert_with(Instant::now);
        self.splits.retain(|paced| paced.split.next < self.end);
        // The one that has waited longest.
        let Some(paced) = self.splits.iter_mut().min_by_key(|paced| paced.due(self.rate)) else {
            return Ok(Progress::Finished);
        };
        let mut count = paced.count(self.rate, began.elapsed(), self.end);
        while count == 0 {
            let wait = paced.due(self.rate).saturating_sub(began.elapsed());
            tokio::time::sleep(wait.max(SHORTEST_WAIT)).await;
            count = paced.count(self.rate, began.elapsed(), self.end);
        }
        let GenerateSplit { next, step, .. } = paced.split;
        (fetched.batch.next, fetched.batch.step, fetched.batch.left) = (next, step, count);
        paced.split.next = next.saturating_add(count.saturating_mul(step));
        fetched.advanced.push(paced.split.clone());
        Ok(Progress::More)
    }
}

/// Records that are made as they are iterated.
pub struct GenerateBatch<F> {
    make: Arc<F>,
    next: u64,
    step: u64,
    left: u64,
}

impl<F> fmt::Debug for GenerateBatch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenerateBatch")
            .field("next", &self.next)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<F, T> Batch for GenerateBatch<F>
where
    F: Fn(u64) -> T + Send + Sync + 'static,
    T: 'static,
{
    type Item<'a> = T;

    #[inline]
    fn records(&mut self) -> impl Iterator<Item = T> {
        let GenerateBatch { make, next, step, left } = self;
        let (first, step, total) = (*next, *step, *left);
        let indexes = Resume::new(0..total, move |rest| {
            *next = first + rest.start * step;
            *left = total - rest.start;
        });
        indexes.map(move |index| make(first + index * step))
    }
}
