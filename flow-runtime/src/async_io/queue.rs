//! The records of an operator that are not answered yet, in their order, with the watermarks between them.

use std::{collections::VecDeque, future::Future, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Link, Settings, TimedOut, link::Outcome};
use crate::{
    error::BoxError,
    state::{StateItems, StateValue},
    time::{Timestamp, Watermark},
    watermark::Mark,
    worker::AbortOnDrop,
};

/// Results that are held at a time.
const RESULTS: usize = 1024;

/// A record that is under way, as a checkpoint holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay<T> {
    /// The record.
    pub record: T,
    /// Its event time.
    pub time: Timestamp,
    /// How far event time had come before it.
    pub after: Option<Watermark>,
}

struct Entry<T, R> {
    /// `None` once it is emitted.
    record: Option<UnderWay<T>>,
    state: State<R>,
    /// How often it was asked for.
    attempts: u32,
}

enum State<R> {
    Waiting,
    /// Held so that it ends with the operator.
    Running(#[allow(dead_code, reason = "held")] AbortOnDrop<()>),
    Answered(Result<R, BoxError>),
    TimedOut,
    Emitted,
}

/// An answer that goes on through the chain.
pub struct Done<T, R> {
    /// The number of the record among those of this attempt.
    pub number: u64,
    /// Its event time.
    pub time: Timestamp,
    record: T,
    /// `None` if there is none in time, and the pipeline has a value for that.
    answer: Option<Result<R, BoxError>>,
}

impl<T, R> Done<T, R> {
    /// The answer.
    ///
    /// # Errors
    /// What the future said, or that it has taken too long.
    #[inline]
    pub fn result(self) -> Result<R, BoxError> {
        self.pair().map(|(_, answer)| answer)
    }

    /// The record and the answer.
    ///
    /// # Errors
    /// As [`result`](Self::result).
    #[inline]
    pub fn pair(self) -> Result<(T, R), BoxError> {
        match self.answer {
            Some(Ok(answer)) => Ok((self.record, answer)),
            Some(Err(error)) => Err(error),
            None => unreachable!("the pipeline has no value for it"),
        }
    }

    /// The answer, or the pipeline's own value for a record that has none in time.
    ///
    /// # Errors
    /// What the future said.
    #[inline]
    pub fn result_or(self, late: impl FnOnce(T) -> R) -> Result<R, BoxError> {
        self.answer.unwrap_or_else(|| Ok(late(self.record)))
    }
}

impl<T, R> std::fmt::Debug for Done<T, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Done").field("number", &self.number).field("time", &self.time).finish_non_exhaustive()
    }
}

/// See the [module](self).
pub(crate) struct Queue<T, R> {
    settings: Settings,
    link: Link<R>,
    /// The first of them has the number `first`.
    entries: VecDeque<Entry<T, R>>,
    first: u64,
    /// The next to be started.
    next: u64,
    /// Started and not emitted.
    open: usize,
    /// Those that are answered and not emitted, in the order in which they were; unless answers keep the order of records.
    answered: VecDeque<u64>,
    /// A watermark that stands before the record of this number.
    marks: VecDeque<(u64, Watermark)>,
    /// The newest watermark that has come in.
    heard: Option<Watermark>,
    /// The newest that is let through.
    passed: Option<Watermark>,
    /// As `passed`, while there was input.
    before_end: Option<Watermark>,
    done: Vec<Done<T, R>>,
}

impl<T: StateValue, R: Send + 'static> Queue<T, R> {
    pub(super) fn new(settings: Settings, link: Link<R>) -> Self {
        Queue {
            settings,
            link,
            entries: VecDeque::new(),
            first: 0,
            next: 0,
            open: 0,
            answered: VecDeque::new(),
            marks: VecDeque::new(),
            heard: None,
            passed: None,
            before_end: None,
            done: Vec::new(),
        }
    }

    pub(super) fn link(&self) -> &Link<R> {
        &self.link
    }

    /// A record comes in.
    #[inline]
    pub(super) fn put(&mut self, record: T, time: Timestamp) {
        let record = UnderWay { record, time, after: self.heard };
        self.entries.push_back(Entry { record: Some(record), state: State::Waiting, attempts: 0 });
        self.link.under_way(1);
    }

    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry<T, R>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.entries.get_mut(index)
    }

    /// A watermark comes in, behind the records so far.
    pub(super) fn hear(&mut self, watermark: Watermark) {
        if self.heard.is_some_and(|heard| heard >= watermark) {
            return;
        }
        self.heard = Some(watermark);
        self.mark(watermark);
    }

    fn mark(&mut self, watermark: Watermark) {
        let end = self.end();
        match self.marks.back_mut() {
            Some((before, last)) if *before == end => *last = watermark,
            _ => self.marks.push_back((end, watermark)),
        }
    }

    /// Takes what has ended since, and asks again where that is wanted.
    pub(super) fn receive<F>(&mut self, ask: &mut impl FnMut(T) -> F) -> Result<(), BoxError>
    where
        F: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        let ended: Vec<_> = self.link.take().collect();
        for (number, outcome) in ended {
            let timeout = self.settings.timeout;
            let error = match outcome {
                Outcome::Answer(answer) => {
                    self.answer(number, State::Answered(Ok(answer)));
                    continue;
                }
                Outcome::Panicked(message) => {
                    return Err(format!("the future of record {number} panicked: {message}").into());
                }
                Outcome::Failed(error) => error,
                Outcome::TimedOut => TimedOut(timeout).into(),
            };
            let attempts = self.entry(number).map_or(0, |entry| entry.attempts);
            if let Some(delay) = self.settings.retry.after(attempts, &error) {
                self.start(number, delay, ask);
            } else if self.settings.late_value && error.is::<TimedOut>() {
                self.answer(number, State::TimedOut);
            } else {
                self.answer(number, State::Answered(Err(error)));
            }
        }
        Ok(())
    }

    fn answer(&mut self, number: u64, state: State<R>) {
        if let Some(entry) = self.entry(number) {
            entry.state = state;
            if !self.settings.ordered {
                self.answered.push_back(number);
            }
        }
    }

    /// Starts as many as there is room for.
    pub(super) fn start_more<F>(&mut self, ask: &mut impl FnMut(T) -> F)
    where
        F: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        while self.open < self.settings.capacity && self.next < self.end() {
            self.open += 1;
            self.next += 1;
            self.start(self.next - 1, Duration::ZERO, ask);
        }
    }

    fn start<F>(&mut self, number: u64, delay: Duration, ask: &mut impl FnMut(T) -> F)
    where
        F: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        let timeout = self.settings.timeout;
        let Some(entry) = self.entry(number) else { return };
        let Some(under_way) = &entry.record else { return };
        let future = ask(under_way.record.clone());
        entry.attempts += 1;
        let running = State::Running(self.link.spawn(number, delay, timeout, future));
        if let Some(entry) = self.entry(number) {
            entry.state = running;
        }
    }

    /// Before which record a watermark stands that has not passed.
    fn limit(&self) -> u64 {
        self.marks.front().map_or(u64::MAX, |(before, _)| *before)
    }

    /// Emits what may go on. Returns whether it is anything.
    pub(super) fn emit(&mut self) -> bool {
        let limit = self.limit();
        if self.settings.ordered {
            while self.done.len() < RESULTS
                && self.first < limit
                && self.entries.front().is_some_and(Entry::is_answered)
            {
                self.emit_one(self.first);
                self.drop_emitted();
            }
        } else {
            let mut left = self.answered.len();
            while left > 0 && self.done.len() < RESULTS {
                left -= 1;
                match self.answered.pop_front() {
                    Some(number) if number < limit => self.emit_one(number),
                    Some(number) => self.answered.push_back(number),
                    None => {}
                }
            }
            // What was passed over keeps its place.
            self.answered.rotate_left(left);
            self.drop_emitted();
        }
        !self.done.is_empty()
    }

    fn emit_one(&mut self, number: u64) {
        let Some(entry) = self.entry(number) else { return };
        let Some(UnderWay { record, time, .. }) = entry.record.take() else { return };
        let answer = match std::mem::replace(&mut entry.state, State::Emitted) {
            State::Answered(result) => Some(result),
            _ => None,
        };
        self.done.push(Done { number, time, record, answer });
        self.open -= 1;
        self.link.under_way(-1);
    }

    fn drop_emitted(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.record.is_none()) {
            self.entries.pop_front();
            self.first += 1;
        }
    }

    /// What is to go through the chain now.
    pub(super) fn done(&mut self) -> std::vec::Drain<'_, Done<T, R>> {
        self.done.drain(..)
    }

    /// Lets watermarks through whose records have gone before them.
    pub(super) fn pass(&mut self) {
        while self.marks.front().is_some_and(|(before, _)| *before <= self.first) {
            let passed = self.marks.pop_front().map(|(_, watermark)| watermark);
            self.passed = self.passed.max(passed);
            self.before_end = self.before_end.max(passed.filter(|passed| *passed < Watermark::MAX));
        }
    }

    /// Whether there is something to emit, now that watermarks have passed.
    pub(super) fn has_more(&self) -> bool {
        let limit = self.limit();
        if self.settings.ordered {
            self.first < limit && self.entries.front().is_some_and(Entry::is_answered)
        } else {
            self.answered.iter().any(|number| *number < limit)
        }
    }

    /// Whether it takes no more records.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.settings.capacity
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.marks.is_empty()
    }

    /// How far event time has come behind it, where it has come so far before it.
    pub(super) fn mark_behind(&self, before: Mark) -> Mark {
        Mark { watermark: self.passed, idle: before.idle && self.is_empty() }
    }

    pub(super) fn before_end(&self) -> Option<Watermark> {
        self.before_end
    }

    /// Goes on where a checkpoint was.
    pub(super) fn restore_watermark(&mut self, watermark: Watermark) {
        let watermark = Some(watermark);
        (self.passed, self.before_end) = (watermark, watermark);
        self.heard = self.heard.max(watermark);
        self.marks.retain(|(_, mark)| Some(*mark) > watermark);
    }
}

impl<T, R> Entry<T, R> {
    fn is_answered(&self) -> bool {
        matches!(self.state, State::Answered(_) | State::TimedOut)
    }
}

impl<T: StateValue, R: Send + 'static> StateItems for Queue<T, R> {
    type Item = UnderWay<T>;

    fn items(&self) -> Vec<UnderWay<T>> {
        self.entries.iter().filter_map(|entry| entry.record.clone()).collect()
    }

    /// Of several subtasks in the order of event time, so that none is late that was not.
    fn add(&mut self, mut items: Vec<UnderWay<T>>) {
        items.sort_by_key(|item| item.after);
        for item in items {
            if let Some(after) = item.after {
                self.hear(after);
            }
            self.put(item.record, item.time);
        }
    }
}
