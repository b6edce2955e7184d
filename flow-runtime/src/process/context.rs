//! What a process function is given beside the record.

use super::{KeyedProcessFunction, ProcessFunction};
use crate::{
    error::BoxError,
    time::{Clock, Timestamp, Watermark},
    timers::Timers,
};

/// The context of a [`KeyedProcessFunction`].
pub type KeyedContext<'c, F> = Context<
    'c,
    <F as KeyedProcessFunction>::Key,
    <F as KeyedProcessFunction>::Out,
    <F as KeyedProcessFunction>::Side,
>;

/// The context of a [`ProcessFunction`].
pub type ProcessContext<'c, F> = PlainContext<'c, <F as ProcessFunction>::Out, <F as ProcessFunction>::Side>;

/// What a function has emitted, with the times of the records.
#[derive(Debug)]
pub(super) struct Outputs<Out, Side> {
    pub(super) main: Vec<(Timestamp, Out)>,
    pub(super) side: Vec<(Timestamp, Side)>,
}

impl<Out, Side> Outputs<Out, Side> {
    pub(super) fn new() -> Self {
        Outputs { main: Vec::new(), side: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.main.len() + self.side.len()
    }

    /// How much there is, to go back to.
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.main.len(), self.side.len())
    }

    /// Drops what was emitted since.
    pub(super) fn back_to(&mut self, (main, side): (usize, usize)) {
        self.main.truncate(main);
        self.side.truncate(side);
    }
}

/// What a function is given with a record of a key, or a timer.
#[derive(Debug)]
pub struct Context<'c, K, Out, Side> {
    pub(super) key: &'c K,
    /// Of the record; none if the stream carries no event time, or for a timer by the clock.
    pub(super) timestamp: Option<Timestamp>,
    pub(super) watermark: Watermark,
    /// Whether the stream carries event time.
    pub(super) timed: bool,
    pub(super) clock: &'c Clock,
    pub(super) timers: &'c mut Timers,
    pub(super) outputs: &'c mut Outputs<Out, Side>,
    /// Whether a timer was set for an event time that is reached.
    pub(super) reached: bool,
    pub(super) refused: Option<BoxError>,
}

impl<K, Out, Side> Context<'_, K, Out, Side> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        self.key
    }

    /// The event time of the record, or the time of an event-time timer. None on a stream without `.watermarks(..)`,
    /// and for a processing-time timer.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// How far event time has come: [`Watermark::MIN`] as long as nothing is known of it, and [`Watermark::MAX`] at the
    /// end of the input.
    #[must_use]
    pub fn watermark(&self) -> Watermark {
        self.watermark
    }

    /// What the clock says.
    #[must_use]
    pub fn processing_time(&self) -> Timestamp {
        self.clock.now()
    }

    /// Emits a record, whose event time is that of the record or timer that this is called for. For a processing-time
    /// timer it is the first time that is not late: a millisecond after the watermark.
    pub fn emit(&mut self, record: Out) {
        let time = self.time();
        self.outputs.main.push((time, record));
    }

    /// Emits a record to the second output; see [`emit`](Self::emit).
    pub fn emit_side(&mut self, record: Side) {
        let time = self.time();
        self.outputs.side.push((time, record));
    }

    fn time(&self) -> Timestamp {
        self.timestamp.unwrap_or_else(|| self.watermark.timestamp().plus_millis(1))
    }

    /// Has the function called when the watermark has come to this time. A key has at most one event-time timer for a
    /// time. One for a time that is reached already fires at once, after the records of the batch.
    ///
    /// At the end of the input, when the watermark is [`Watermark::MAX`], all timers fire; a function that registers the
    /// next one whenever one fires asks for that first.
    pub fn register_event_time_timer(&mut self, time: Timestamp) {
        if self.timed {
            self.reached |= self.watermark.has_passed(time);
            self.timers.event.insert(after_the_beginning(time));
        } else {
            self.refuse();
        }
    }

    /// Removes the event-time timer for this time, if there is one.
    pub fn delete_event_time_timer(&mut self, time: Timestamp) {
        self.timers.event.remove(after_the_beginning(time));
    }

    /// Has the function called when the clock has come to this time. A key has at most one processing-time timer for a
    /// time. Those that are left at the end of the input do not fire.
    pub fn register_processing_time_timer(&mut self, time: Timestamp) {
        self.timers.processing.insert(after_the_beginning(time));
    }

    /// Removes the processing-time timer for this time, if there is one.
    pub fn delete_processing_time_timer(&mut self, time: Timestamp) {
        self.timers.processing.remove(after_the_beginning(time));
    }

    #[cold]
    fn refuse(&mut self) {
        self.refused.get_or_insert_with(|| {
            "an event-time timer on a stream that carries no event time, where it would never fire: add `.watermarks(.., |record| ..)` before `.key_by(..)`, or register a processing-time timer"
                .into()
        });
    }
}

/// The beginning of time stands for none.
fn after_the_beginning(time: Timestamp) -> Timestamp {
    time.max(Timestamp::MIN.plus_millis(1))
}

/// What a function is given with a record of a stream without keys.
#[derive(Debug)]
pub struct PlainContext<'c, Out, Side> {
    pub(super) timestamp: Option<Timestamp>,
    pub(super) clock: &'c Clock,
    pub(super) outputs: &'c mut Outputs<Out, Side>,
}

impl<Out, Side> PlainContext<'_, Out, Side> {
    /// The event time of the record; none on a stream without `.watermarks(..)`.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// What the clock says.
    #[must_use]
    pub fn processing_time(&self) -> Timestamp {
        self.clock.now()
    }

    /// Emits a record, with the event time of the one that this is called for.
    pub fn emit(&mut self, record: Out) {
        self.outputs.main.push((self.timestamp.unwrap_or(Timestamp::MIN), record));
    }

    /// Emits a record to the second output; see [`emit`](Self::emit).
    pub fn emit_side(&mut self, record: Side) {
        self.outputs.side.push((self.timestamp.unwrap_or(Timestamp::MIN), record));
    }

    /// There are no timers here: a timer belongs to a key. This says so to the compiler.
    pub fn register_event_time_timer(&mut self, time: Timestamp)
    where
        Self: SetsTimers,
    {
        let _ = time;
    }

    /// There are no timers here: a timer belongs to a key. This says so to the compiler.
    pub fn register_processing_time_timer(&mut self, time: Timestamp)
    where
        Self: SetsTimers,
    {
        let _ = time;
    }
}

/// Contexts that have timers.
#[diagnostic::on_unimplemented(
    message = "a timer outside of a keyed process function",
    label = "a timer belongs to a key, and there is none here",
    note = "implement `flow::KeyedProcessFunction`, and put `.key_by(|record| ..)` right before `.process(..)`"
)]
pub trait SetsTimers {}
impl<K, Out, Side> SetsTimers for Context<'_, K, Out, Side> {}
