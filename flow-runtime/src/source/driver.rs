//! A source and the fused chain over its batches, as the engine sees both: one step at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use super::{
    Batch, Fetched, Progress, Source, SourceContext, Split,
    feed::{Feed, Supply},
    splits::{Assigner, share},
};
use crate::{
    chain::{ChainError, Environment, Fault, Work},
    checkpoint::SplitState,
    error::{BoxError, Error, Place},
    watermark::{Generating, SplitRuns},
    worker::Alarm,
};

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A batch went through the chain.
    Worked,
    /// There is nothing to read now; the alarm rings when there is.
    Waiting,
    /// Nothing may be read now, because all that is there is ahead of other splits. To be asked again soon.
    Ahead,
    /// Everything is read.
    Finished,
}

/// A source chain, whatever its types.
pub(crate) trait SourceDriver {
    /// Starts to read; `alarm` wakes the operator.
    fn start(&mut self, alarm: Alarm);

    /// The uid of the source's operator.
    fn uid(&self) -> &str;

    /// Whether the subtask knows its splits. Until then it has no position, so no checkpoint may be taken: what a
    /// checkpoint does not know of is read from its beginning, even where a first start would begin at the end.
    fn assigned(&mut self) -> Result<bool, Error>;

    /// The time by which splits become idle, for the next step.
    fn clock(&mut self, now: Duration);

    /// Runs the chain over one batch, if there is one.
    fn step(&mut self, work: &Work) -> Result<Step, Error>;

    /// The splits and how far the chain has come in each.
    fn positions(&self) -> Result<Vec<SplitState>, Error>;
}

/// A [`SourceDriver`] with its types.
pub(crate) struct ChainSource<S: Source, F> {
    source: Arc<S>,
    cx: SourceContext,
    operator: usize,
    environment: Arc<Environment>,
    feed: Option<Feed<S>>,
    assigned: bool,
    positions: BTreeMap<String, S::Split>,
    /// Where the id of a split is written, again and again.
    id: String,
    /// Of the chain's `.watermarks(..)`.
    generators: Vec<Rc<dyn Generating>>,
    runs: SplitRuns,
    now: Duration,
    /// The splits that the reader leaves out.
    paused: BTreeSet<String>,
    /// Whether more splits may be found. Otherwise the end of the last one is the end of the input, which the next step
    /// says, and until then the subtask is not idle: who reads from it along two ways would hear on one of them that it
    /// is at the end, while it is still left out on the other, with records to come.
    endless: bool,
    run: F,
}

impl<S, F> ChainSource<S, F>
where
    S: Source,
    F: FnMut(&mut S::Batch) -> Result<(), ChainError>,
{
    pub(crate) fn new(
        source: S,
        cx: SourceContext,
        operator: usize,
        environment: Arc<Environment>,
        generators: Vec<Rc<dyn Generating>>,
        run: F,
    ) -> Self {
        let (endless, source) = (source.discovery_interval().is_some(), Arc::new(source));
        ChainSource {
            source,
            cx,
            operator,
            environment,
            feed: None,
            assigned: false,
            positions: BTreeMap::new(),
            id: String::new(),
            generators,
            runs: SplitRuns::default(),
            now: Duration::ZERO,
            paused: BTreeSet::new(),
            endless,
            run,
        }
    }

    /// The subtask has these splits now.
    fn assign(&mut self, splits: Vec<S::Split>) {
        for generators in &self.generators {
            let open = splits.iter().filter(|split| !split.is_finished());
            generators.assigned(open.map(Split::id).collect(), self.now);
        }
        self.positions.extend(splits.into_iter().map(|split| (split.id(), split)));
        self.assigned = true;
    }

    /// Tells whose the records of a batch are.
    fn tell_splits(&mut self, fetched: &Fetched<S::Batch, S::Split>) {
        if self.generators.is_empty() {
            return;
        }
        let SplitRuns { runs, advanced } = &mut self.runs;
        *runs = fetched.batch.runs();
        advanced.resize_with(fetched.advanced.len(), String::new);
        for (id, split) in advanced.iter_mut().zip(&fetched.advanced) {
            id.clear();
            split.write_id(id);
        }
        for generators in &self.generators {
            generators.begin(Some(&self.runs), self.now);
        }
    }

    /// Lets splits wait for others that are behind. Returns whether nothing may be read.
    fn align(&mut self) -> Result<bool, Error> {
        let (mut paused, mut all) = (BTreeSet::new(), false);
        for waiting in self.generators.iter().filter_map(|generators| generators.align(self.now)) {
            paused.extend(waiting.splits);
            all |= waiting.all;
        }
        if paused != self.paused {
            self.paused.clone_from(&paused);
            if let Some(feed) = &mut self.feed
                && let Err(cause) = feed.pause(paused)
            {
                return Err(self.failed(cause));
            }
        }
        Ok(all)
    }

    fn failed(&self, cause: BoxError) -> Error {
        let operator = self.cx.operator.clone();
        // Of several splits it might be any.
        let record = match self.positions.values().next() {
            Some(split) if self.positions.len() == 1 => {
                Some(format!("`{}` after {}", split.id(), split.position()))
            }
            _ => None,
        };
        Error::Source { place: Place { operator, subtask: self.cx.subtask, record }, cause }
    }
}

impl<S, F> SourceDriver for ChainSource<S, F>
where
    S: Source,
    F: FnMut(&mut S::Batch) -> Result<(), ChainError>,
{
    fn start(&mut self, alarm: Alarm) {
        let parallelism = self.cx.parallelism;
        let assigner =
            self.environment.shared.get("splits", self.operator, || Assigner::<S::Split>::new(parallelism));
        // A source of which the checkpoint knows nothing starts for the first time.
        let restored = self.environment.restored.as_ref().map(|restored| restored.splits(&self.cx.operator));
        let restored = restored.filter(|splits| !splits.is_empty());
        // A restored one has positions before it has looked for more, so that checkpoints go on, and the job can be
        // stopped, while it is out of reach. What cannot be decoded is reported by the feed.
        if let Some(Ok(splits)) =
            restored.as_deref().map(|splits| share(splits, self.cx.subtask, parallelism))
        {
            self.assign(splits);
        }
        self.feed = Some(Feed::start(
            Arc::clone(&self.source),
            self.cx.clone(),
            assigner,
            restored,
            alarm,
            &self.environment.tokio,
        ));
    }

    fn uid(&self) -> &str {
        &self.cx.operator
    }

    fn assigned(&mut self) -> Result<bool, Error> {
        let Some(feed) = &mut self.feed else { return Ok(false) };
        if !self.assigned {
            // The splits are what a feed delivers first.
            match feed.poll() {
                Ok(Supply::Assigned(splits)) => self.assign(splits),
                Ok(_) => {}
                Err(cause) => return Err(self.failed(cause)),
            }
        }
        Ok(self.assigned)
    }

    fn clock(&mut self, now: Duration) {
        self.now = now;
    }

    fn step(&mut self, work: &Work) -> Result<Step, Error> {
        if self.align()? {
            return Ok(Step::Ahead);
        }
        let (mut fetched, progress) = loop {
            let Some(feed) = &mut self.feed else { return Ok(Step::Waiting) };
            match feed.poll() {
                Ok(Supply::Assigned(splits)) => self.assign(splits),
                Ok(Supply::Batch(fetched, progress)) => break (fetched, progress),
                Ok(Supply::Nothing) if !self.paused.is_empty() => return Ok(Step::Ahead),
                Ok(Supply::Nothing) => return Ok(Step::Waiting),
                Err(cause) => return Err(self.failed(cause)),
            }
        };
        self.tell_splits(&fetched);
        let outcome = work.run(|| (self.run)(&mut fetched.batch));
        let outcome = match outcome {
            Ok(()) => match fetched.batch.error() {
                Some(cause) => {
                    Err(ChainError { operator: self.operator, record: u64::MAX, fault: Fault::Source(cause) })
                }
                None => Ok(()),
            },
            failed => failed,
        };
        if let Err(error) = outcome {
            let record = match error.record {
                u64::MAX => None,
                index => fetched.batch.describe(index).or_else(|| {
                    let split = fetched.advanced.first().or(self.positions.values().next())?;
                    Some(format!(
                        "record {index} of a batch of `{}` that ends at {}",
                        split.id(),
                        split.position()
                    ))
                }),
            };
            return Err(work.place(error, record));
        }
        if let Some(watermark) = fetched.batch.watermark() {
            for generators in &self.generators {
                fetched.advanced.iter().for_each(|split| generators.promised(&split.id(), watermark));
            }
        }
        for split in fetched.advanced.drain(..) {
            let finished = split.is_finished();
            self.id.clear();
            split.write_id(&mut self.id);
            match self.positions.get_mut(&self.id) {
                Some(position) => *position = split,
                None => drop(self.positions.insert(self.id.clone(), split)),
            }
            if finished && (self.endless || self.positions.values().any(|split| !split.is_finished())) {
                self.generators.iter().for_each(|generators| generators.finished(&self.id));
            }
        }
        if let Some(feed) = &mut self.feed {
            feed.give_back(fetched);
        }
        Ok(if progress == Progress::Finished { Step::Finished } else { Step::Worked })
    }

    fn positions(&self) -> Result<Vec<SplitState>, Error> {
        self.positions
            .values()
            .map(|split| {
                let data = rmp_serde::to_vec_named(split).map_err(|e| self.failed(e.into()))?;
                Ok(SplitState { id: split.id(), position: split.position(), data })
            })
            .collect()
    }
}
