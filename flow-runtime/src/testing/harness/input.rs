//! A source that a test pushes records into.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::signal::Signal;
use crate::{
    error::BoxError,
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader, Split},
    time::{Timestamp, Watermark},
};

/// A source of a pipeline under test, and the handle by which the test pushes records into it. Clones are the same.
///
/// Made by [`Harness::input`](super::Harness::input). What was pushed stays, so that a job that goes on from a checkpoint
/// reads it again from there.
pub struct Input<T>(Arc<Shared<T>>);

struct Shared<T> {
    log: Mutex<Log<T>>,
    /// Changes with the log.
    version: watch::Sender<u64>,
    signal: Signal,
}

struct Log<T> {
    splits: Vec<SplitLog<T>>,
    closed: bool,
    pushes: u64,
}

struct SplitLog<T> {
    steps: Vec<Step<T>>,
    /// How many steps have gone through the chain of the source in this attempt; `None` before the split is opened.
    taken: Option<usize>,
}

struct Step<T> {
    /// The number of the push, over all splits.
    number: u64,
    records: Vec<T>,
    watermark: Option<Watermark>,
}

impl<T> Clone for Input<T> {
    fn clone(&self) -> Self {
        Input(Arc::clone(&self.0))
    }
}

impl<T> std::fmt::Debug for Input<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let log = self.log();
        let steps = log.splits.iter().map(|split| split.steps.len()).sum::<usize>();
        f.debug_struct("Input").field("pushes", &steps).field("closed", &log.closed).finish_non_exhaustive()
    }
}

impl<T> Input<T> {
    pub(super) fn new(splits: usize, signal: Signal) -> Self {
        let splits = (0..splits).map(|_| SplitLog { steps: Vec::new(), taken: None }).collect();
        let log = Mutex::new(Log { splits, closed: false, pushes: 0 });
        Input(Arc::new(Shared { log, version: watch::Sender::new(0), signal }))
    }

    /// A record. Each push goes through the pipeline by itself, so a watermark may follow it at once.
    pub fn push(&self, record: T) {
        self.push_all([record]);
    }

    /// Records that come together: a watermark follows only the last of them.
    ///
    /// # Panics
    /// After [`close`](Self::close), as all ways to push.
    pub fn push_all(&self, records: impl IntoIterator<Item = T>) {
        self.push_to(0, records);
    }

    /// As [`push_all`](Self::push_all), into one of several splits.
    ///
    /// # Panics
    /// When the input has no such split.
    pub fn push_to(&self, split: usize, records: impl IntoIterator<Item = T>) {
        self.step(split, records.into_iter().collect(), None);
    }

    /// No record at or before this time follows, whatever the strategy of the pipeline's `.watermarks(..)` says. The
    /// pipeline hears it if nothing stands between its source and its `.watermarks(..)` but what works on each record.
    pub fn watermark(&self, time: Timestamp) {
        let watermark = Some(Watermark::new(time));
        let splits = self.log().splits.len();
        (0..splits).for_each(|split| self.step(split, Vec::new(), watermark));
    }

    /// Nothing follows: the job ends when all of its inputs are closed, and all open windows fire. A split that is read to
    /// its end holds nobody back.
    pub fn close(&self) {
        self.log().closed = true;
        self.changed();
    }

    fn step(&self, split: usize, records: Vec<T>, watermark: Option<Watermark>) {
        {
            let mut log = self.log();
            assert!(
                split < log.splits.len(),
                "the input has {} splits, and no split {split}",
                log.splits.len()
            );
            assert!(!log.closed, "the input is closed");
            let number = log.pushes;
            log.pushes += 1;
            log.splits[split].steps.push(Step { number, records, watermark });
        }
        self.changed();
    }

    fn changed(&self) {
        self.0.version.send_modify(|version| *version += 1);
    }

    fn log(&self) -> MutexGuard<'_, Log<T>> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the harness needs of an input, whatever its type.
pub(super) trait InputPort: Send + Sync {
    /// A new attempt begins.
    fn reset(&self);
    /// How many pushes have not gone through the source's chain yet.
    fn left(&self) -> usize;
    fn close(&self);
}

impl<T: Send + Sync + 'static> InputPort for Input<T> {
    fn reset(&self) {
        self.log().splits.iter_mut().for_each(|split| split.taken = None);
    }

    fn left(&self) -> usize {
        let log = self.log();
        log.splits.iter().map(|split| split.steps.len() - split.taken.unwrap_or(0)).sum()
    }

    fn close(&self) {
        self.close();
    }
}

/// A part of an input, and how far it is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InputSplit {
    number: usize,
    step: usize,
    /// Whether nothing follows.
    finished: bool,
}

impl Split for InputSplit {
    fn id(&self) -> String {
        format!("split {}", self.number)
    }

    fn position(&self) -> String {
        format!("push {}", self.step)
    }

    fn is_finished(&self) -> bool {
        self.finished
    }
}

impl<T: Clone + Send + Sync + 'static> Source for Input<T> {
    type Split = InputSplit;
    type Batch = InputBatch<T>;
    type Reader = InputReader<T>;

    async fn discover(&self, _: bool) -> Result<Vec<InputSplit>, BoxError> {
        Ok((0..self.log().splits.len())
            .map(|number| InputSplit { number, step: 0, finished: false })
            .collect())
    }

    async fn open(&self, _: SourceContext, splits: Vec<InputSplit>) -> Result<InputReader<T>, BoxError> {
        let mut log = self.log();
        for split in &splits {
            match log.splits.get_mut(split.number) {
                Some(log) if split.step <= log.steps.len() => log.taken = Some(split.step),
                _ => {
                    return Err(format!(
                        "the checkpoint has read up to push {} of split {} of another input: restore with the handles that the job was started with",
                        split.step, split.number
                    )
                    .into());
                }
            }
        }
        let versions = self.0.version.subscribe();
        self.0.signal.ring();
        Ok(InputReader { input: self.clone(), splits, paused: BTreeSet::new(), versions })
    }
}

impl<T: Clone + Send + Sync + 'static> Rewindable for Input<T> {}
impl<T: Clone + Send + Sync + 'static> Bounded for Input<T> {}

/// Reads the splits of a subtask in the order in which they were pushed into.
#[derive(Debug)]
pub struct InputReader<T> {
    input: Input<T>,
    splits: Vec<InputSplit>,
    /// Ahead of others, in a pipeline with alignment.
    paused: BTreeSet<String>,
    versions: watch::Receiver<u64>,
}

impl<T: Clone + Send + Sync + 'static> SourceReader for InputReader<T> {
    type Split = InputSplit;
    type Batch = InputBatch<T>;

    fn batch(&self) -> InputBatch<T> {
        InputBatch { input: self.input.clone(), records: Vec::new(), watermark: None, split: 0, step: 0 }
    }

    fn pause(&mut self, splits: &BTreeSet<String>) -> Result<bool, BoxError> {
        self.paused.clone_from(splits);
        Ok(true)
    }

    async fn fetch(
        &mut self,
        fetched: &mut Fetched<InputBatch<T>, InputSplit>,
    ) -> Result<Progress, BoxError> {
        loop {
            self.versions.borrow_and_update();
            {
                let log = self.input.log();
                let read = self.splits.iter_mut().filter(|split| !self.paused.contains(&split.id()));
                let steps = read.filter_map(|split| {
                    let step = log.splits.get(split.number)?.steps.get(split.step)?;
                    Some((split, step))
                });
                if let Some((split, step)) = steps.min_by_key(|(_, step)| step.number) {
                    split.step += 1;
                    let batch = &mut fetched.batch;
                    batch.records.clone_from(&step.records);
                    (batch.watermark, batch.split, batch.step) = (step.watermark, split.number, split.step);
                    fetched.advanced.push(split.clone());
                    return Ok(Progress::More);
                }
                if log.closed {
                    // The batch was used before.
                    fetched.batch.records.clear();
                    (fetched.batch.watermark, fetched.batch.step) = (None, 0);
                    let at_end = |split: &InputSplit| split.step == log.splits[split.number].steps.len();
                    for split in self.splits.iter_mut().filter(|split| !split.finished && at_end(split)) {
                        split.finished = true;
                        fetched.advanced.push(split.clone());
                    }
                    if self.splits.iter().all(|split| split.finished) {
                        return Ok(Progress::Finished);
                    }
                    if !fetched.advanced.is_empty() {
                        return Ok(Progress::More);
                    }
                }
            }
            // The sender lives in the input.
            let _ = self.versions.changed().await;
        }
    }
}

/// What was pushed at a time.
#[derive(Debug)]
pub struct InputBatch<T> {
    input: Input<T>,
    records: Vec<T>,
    watermark: Option<Watermark>,
    split: usize,
    /// The number of steps of the split with this one.
    step: usize,
}

impl<T: Send + Sync + 'static> Batch for InputBatch<T> {
    type Item<'a> = T;

    fn records(&mut self) -> impl Iterator<Item = T> {
        self.records.drain(..)
    }

    /// Asked when the records have gone through the chain, on its worker: a barrier that is asked for now comes after
    /// them.
    fn error(&mut self) -> Option<BoxError> {
        let (split, step) = (self.split, self.step);
        if step > 0
            && let Some(split) = self.input.log().splits.get_mut(split)
        {
            split.taken = Some(step);
        }
        self.input.0.signal.ring();
        None
    }

    fn watermark(&self) -> Option<Watermark> {
        self.watermark
    }

    fn describe(&self, index: u64) -> Option<String> {
        Some(format!("record {index} of push {} of split {}", self.step.saturating_sub(1), self.split))
    }
}
