//! A source that does what a test tells it to.

use std::{
    collections::BTreeSet,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use flow::{
    BoxError,
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader, Split},
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::Fuse;

/// Something that a source waits for.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub(crate) fn closed() -> Self {
        Gate(Arc::new(watch::Sender::new(false)))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    fn is_open(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn opened(&self) {
        // The sender lives in `self`.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// What one split does, step by step.
#[derive(Clone, Debug)]
pub(crate) struct Script<T>(Vec<Step<T>>);

#[derive(Clone, Debug)]
enum Step<T> {
    Record(T),
    /// Ends the batch.
    Cut,
    Pause(Duration),
    Wait(Gate),
    Fail(Fuse),
    Panic(Fuse),
    Never,
}

impl<T> Script<T> {
    pub(crate) fn new() -> Self {
        Script(Vec::new())
    }

    fn step(mut self, step: Step<T>) -> Self {
        self.0.push(step);
        self
    }

    /// Records, all in one batch.
    pub(crate) fn records(mut self, records: impl IntoIterator<Item = T>) -> Self {
        self.0.extend(records.into_iter().map(Step::Record));
        self.step(Step::Cut)
    }

    /// A moment without records.
    pub(crate) fn pause(self, pause: Duration) -> Self {
        self.step(Step::Pause(pause))
    }

    /// Nothing until the gate opens.
    pub(crate) fn wait(self, gate: &Gate) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// The source fails here as long as the fuse blows.
    pub(crate) fn fail(self, fuse: &Fuse) -> Self {
        self.step(Step::Fail(fuse.clone()))
    }

    /// The source panics here as long as the fuse blows.
    pub(crate) fn panic(self, fuse: &Fuse) -> Self {
        self.step(Step::Panic(fuse.clone()))
    }

    /// Nothing more, and no end either.
    pub(crate) fn never(self) -> Self {
        self.step(Step::Never)
    }
}

/// A source with one split per script.
#[derive(Clone, Debug)]
pub(crate) struct Scripted<T> {
    scripts: Arc<Vec<Script<T>>>,
    /// Before it opens, the source is out of reach.
    reach: Option<Gate>,
    /// How many splits there are before it opens.
    growth: Option<(usize, Gate)>,
    /// Whether splits know their end.
    ending: bool,
}

impl<T> Scripted<T> {
    pub(crate) fn new(scripts: impl IntoIterator<Item = Script<T>>) -> Self {
        Scripted {
            scripts: Arc::new(scripts.into_iter().collect()),
            reach: None,
            growth: None,
            ending: false,
        }
    }

    /// Splits say when they are read to their end.
    pub(crate) fn ending(self) -> Self {
        Scripted { ending: true, ..self }
    }

    /// Cannot be reached until the gate opens.
    pub(crate) fn out_of_reach(self, gate: &Gate) -> Self {
        Scripted { reach: Some(gate.clone()), ..self }
    }

    /// Only the first splits are there until the gate opens; the source looks for more.
    pub(crate) fn growing(self, first: usize, gate: &Gate) -> Self {
        Scripted { growth: Some((first, gate.clone())), ..self }
    }
}

/// How far a script has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ScriptSplit {
    number: usize,
    step: usize,
    end: Option<usize>,
}

impl Split for ScriptSplit {
    fn id(&self) -> String {
        format!("script {}", self.number)
    }

    fn position(&self) -> String {
        format!("step {}", self.step)
    }

    fn is_finished(&self) -> bool {
        self.end.is_some_and(|end| self.step >= end)
    }
}

impl<T: Clone + Send + Sync + 'static> Source for Scripted<T> {
    type Split = ScriptSplit;
    type Batch = ScriptBatch<T>;
    type Reader = ScriptReader<T>;

    async fn discover(&self, _: bool) -> Result<Vec<ScriptSplit>, BoxError> {
        if let Some(gate) = &self.reach {
            gate.opened().await;
        }
        let there = match &self.growth {
            Some((first, gate)) if !gate.is_open() => *first,
            _ => self.scripts.len(),
        };
        let end = |number: usize| self.ending.then(|| self.scripts[number].0.len());
        Ok((0..there).map(|number| ScriptSplit { number, step: 0, end: end(number) }).collect())
    }

    fn discovery_interval(&self) -> Option<Duration> {
        self.growth.as_ref().map(|_| Duration::from_millis(10))
    }

    async fn open(&self, _: SourceContext, splits: Vec<ScriptSplit>) -> Result<ScriptReader<T>, BoxError> {
        Ok(ScriptReader { scripts: self.scripts.clone(), splits, paused: BTreeSet::new() })
    }
}

impl<T: Clone + Send + Sync + 'static> Rewindable for Scripted<T> {}
impl<T: Clone + Send + Sync + 'static> Bounded for Scripted<T> {}

/// Plays the scripts of a subtask, one after the other, except where they wait.
pub(crate) struct ScriptReader<T> {
    scripts: Arc<Vec<Script<T>>>,
    splits: Vec<ScriptSplit>,
    paused: BTreeSet<String>,
}

impl<T: Clone + Send + Sync + 'static> SourceReader for ScriptReader<T> {
    type Split = ScriptSplit;
    type Batch = ScriptBatch<T>;

    fn batch(&self) -> ScriptBatch<T> {
        ScriptBatch { records: Vec::new(), first: 0, split: 0 }
    }

    async fn add_splits(&mut self, splits: Vec<ScriptSplit>) -> Result<(), BoxError> {
        self.splits.extend(splits);
        Ok(())
    }

    fn pause(&mut self, splits: &BTreeSet<String>) -> Result<bool, BoxError> {
        self.paused.clone_from(splits);
        Ok(true)
    }

    async fn fetch(
        &mut self,
        fetched: &mut Fetched<ScriptBatch<T>, ScriptSplit>,
    ) -> Result<Progress, BoxError> {
        fetched.batch.records.clear();
        loop {
            let mut waiting: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
            for split in &mut self.splits {
                if self.paused.contains(&split.id()) && split.step < self.scripts[split.number].0.len() {
                    waiting.push(Box::pin(std::future::pending()));
                    continue;
                }
                let script = &self.scripts[split.number].0;
                fetched.batch.split = split.number;
                fetched.batch.first = split.step;
                while let Some(step) = script.get(split.step) {
                    match step {
                        Step::Record(record) => fetched.batch.records.push(record.clone()),
                        Step::Cut => {
                            split.step += 1;
                            fetched.advanced.push(split.clone());
                            return Ok(Progress::More);
                        }
                        Step::Pause(pause) => tokio::time::sleep(*pause).await,
                        Step::Wait(gate) if gate.is_open() => {}
                        Step::Wait(gate) => {
                            let gate = gate.clone();
                            waiting.push(Box::pin(async move { gate.opened().await }));
                            break;
                        }
                        Step::Fail(fuse) => fuse.fail(true)?,
                        Step::Panic(fuse) => fuse.panic(true),
                        Step::Never => {
                            waiting.push(Box::pin(std::future::pending()));
                            break;
                        }
                    }
                    split.step += 1;
                }
            }
            if waiting.is_empty() {
                return Ok(Progress::Finished);
            }
            poll_fn(|cx| match waiting.iter_mut().any(|gate| gate.as_mut().poll(cx).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
    }
}

/// Records that know where they come from.
#[derive(Debug)]
pub(crate) struct ScriptBatch<T> {
    records: Vec<T>,
    split: usize,
    first: usize,
}

impl<T: Send + 'static> Batch for ScriptBatch<T> {
    type Item<'a> = T;

    fn records(&mut self) -> impl Iterator<Item = T> {
        self.records.drain(..)
    }

    fn describe(&self, index: u64) -> Option<String> {
        Some(format!("step {} of script {}", self.first as u64 + index, self.split))
    }
}
