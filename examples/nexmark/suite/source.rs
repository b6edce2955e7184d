//! The events as a source: each split has every `step`-th event, and its position is the number of the next one.

use std::collections::VecDeque;

use flow::{
    BoxError,
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader, Split},
    worker::Stop,
};
use serde::{Deserialize, Serialize};

use super::{
    generate::{Generator, Light, full},
    model::Event,
};

/// Events per batch.
const BATCH: u64 = 1024;

/// The first `events` events, in `splits` parts.
#[derive(Clone)]
pub(crate) struct Nexmark {
    pub(crate) generator: Generator,
    pub(crate) events: u64,
    pub(crate) splits: u64,
    /// Asks the job to stop when this event has been read.
    pub(crate) stop_at: Option<(u64, Stop)>,
}

impl Nexmark {
    pub(crate) fn new(generator: Generator, events: u64, splits: u64) -> Self {
        Nexmark { generator, events, splits, stop_at: None }
    }
}

/// Every `step`-th event, from `first` on, and the next one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    first: u64,
    step: u64,
    next: u64,
    end: u64,
}

impl Split for Part {
    fn id(&self) -> String {
        format!("{} of {}", self.first, self.step)
    }
    fn position(&self) -> String {
        format!("event {}", self.next)
    }
    fn is_finished(&self) -> bool {
        self.next >= self.end
    }
}

impl Part {
    /// Takes the next events away: how many, from which on.
    fn take(&mut self) -> (u64, u64) {
        let (from, count) = (self.next, self.end.saturating_sub(self.next).div_ceil(self.step).min(BATCH));
        self.next += count * self.step;
        (from, count)
    }
}

impl Source for Nexmark {
    type Split = Part;
    type Batch = Events;
    type Reader = Reader;

    async fn discover(&self, _restored: bool) -> Result<Vec<Part>, BoxError> {
        let step = self.splits.max(1);
        Ok((0..step).map(|first| Part { first, step, next: first, end: self.events }).collect())
    }

    async fn open(&self, _cx: SourceContext, splits: Vec<Part>) -> Result<Reader, BoxError> {
        let light = (self.generator == Generator::Light).then(Light::shared);
        Ok(Reader { light, parts: splits.into(), stop_at: self.stop_at.clone() })
    }

    /// Nothing is waited for.
    fn inline(&self) -> bool {
        true
    }
}

/// An event depends on its number only.
impl Rewindable for Nexmark {}

impl Bounded for Nexmark {}

/// Reads some parts in turn, so that they stay together in event time.
pub(crate) struct Reader {
    /// Or else the crate's events.
    light: Option<Light>,
    parts: VecDeque<Part>,
    stop_at: Option<(u64, Stop)>,
}

impl SourceReader for Reader {
    type Split = Part;
    type Batch = Events;

    fn batch(&self) -> Events {
        Events { light: self.light, next: 0, step: 1, left: 0, full: VecDeque::new() }
    }

    async fn fetch(&mut self, fetched: &mut Fetched<Events, Part>) -> Result<Progress, BoxError> {
        self.parts.retain(|part| !part.is_finished());
        let Some(mut part) = self.parts.pop_front() else { return Ok(Progress::Finished) };
        let (from, count) = part.take();
        let batch = &mut fetched.batch;
        match batch.light {
            Some(_) => (batch.next, batch.step, batch.left) = (from, part.step, count),
            None => batch.full.extend(full(from, part.step).take(count as usize)),
        }
        if let Some((at, stop)) = &self.stop_at
            && part.next >= *at
        {
            stop.request();
        }
        fetched.advanced.push(part.clone());
        self.parts.push_back(part);
        Ok(Progress::More)
    }
}

/// Events on their way into the chain: the light ones are made as they are iterated.
pub(crate) struct Events {
    light: Option<Light>,
    next: u64,
    step: u64,
    left: u64,
    full: VecDeque<Event>,
}

impl Batch for Events {
    type Item<'a> = Event;

    #[inline(always)]
    fn records(&mut self) -> impl Iterator<Item = Event> {
        Making(self)
    }
}

/// Makes the events of a batch, or takes them out. Inlined, so that what nobody looks at is not made.
struct Making<'b>(&'b mut Events);

impl Iterator for Making<'_> {
    type Item = Event;

    #[inline(always)]
    fn next(&mut self) -> Option<Event> {
        let Events { light, next, step, left, full } = &mut *self.0;
        match light {
            Some(light) => {
                *left = left.checked_sub(1)?;
                let event = light.event(*next);
                *next += *step;
                Some(event)
            }
            None => full.pop_front(),
        }
    }
}
