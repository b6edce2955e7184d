//! What can be concluded from the timestamps of records.

use std::time::Duration;

use super::Stamp;
use crate::{
    error::BoxError,
    time::{Timestamp, Watermark},
};

/// Says up to when all records have come, from the timestamps of those that have.
///
/// [`bounded`], [`monotonous`], [`punctuated`] and [`ingestion`](super::ingestion()) are there; one of your own makes a generator per split:
///
/// ```
/// use flow_runtime::{
///     time::{Timestamp, Watermark},
///     watermark::{Stamp, WatermarkGenerator, WatermarkStrategy},
/// };
///
/// /// Of a device whose records are complete up to the last full minute.
/// struct FullMinutes;
///
/// struct Minutes(Option<i64>);
///
/// impl WatermarkStrategy for FullMinutes {
///     type Generator = Minutes;
///     fn generator(&self) -> Minutes {
///         Minutes(None)
///     }
/// }
///
/// impl WatermarkGenerator for Minutes {
///     fn on_record(&mut self, stamp: Stamp) {
///         self.0 = self.0.max(Some(stamp.time.as_millis().div_euclid(60_000)));
///     }
///     fn watermark(&mut self) -> Option<Watermark> {
///         self.0.map(|minute| Watermark::new(Timestamp::from_millis(minute * 60_000 - 1)))
///     }
/// }
///
/// let mut generator = FullMinutes.generator();
/// generator.on_record(Stamp::at(Timestamp::from_millis(90_000)));
/// assert_eq!(generator.watermark(), Some(Watermark::new(Timestamp::from_millis(59_999))));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no strategy for watermarks",
    label = "this says how late records may come",
    note = "for example `bounded(\"5s\")`, `monotonous()` or `punctuated()`"
)]
pub trait WatermarkStrategy: 'static {
    /// What makes the watermarks of one split.
    type Generator: WatermarkGenerator;

    /// A generator that has seen nothing.
    fn generator(&self) -> Self::Generator;

    /// After how long without records a split, or a subtask, is idle: it does not hold back the others then. `None` for
    /// never.
    fn idleness(&self) -> Option<Duration> {
        None
    }

    /// How far ahead of the clock of this machine a timestamp may be. What is further ahead is an error, like a
    /// timestamp that is missing. `None` for any.
    fn max_ahead(&self) -> Option<Duration> {
        None
    }

    /// How far a split may be ahead of the slowest one before it waits. `None` for as far as it likes.
    fn alignment(&self) -> Option<Duration> {
        None
    }

    /// How often to ask for a watermark while no records come. `None` if only records change it.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// How often a new watermark is said at most. `None` for after each batch that brings one.
    fn interval(&self) -> Option<Duration> {
        None
    }

    /// Called when the job starts: says whether the strategy makes sense.
    ///
    /// # Errors
    /// Why it does not.
    fn check(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// The same, where a split without records for `span` (10 ms or more) does not hold back the others.
    ///
    /// Time in which the split could not be read, because a sink or another operator was slow, does not count.
    fn with_idleness(self, span: Duration) -> Watched<Self>
    where
        Self: Sized,
    {
        Watched { idleness: Some(span), ..Watched::of(self) }
    }

    /// The same, where a new watermark is said once per `span` at most: where batches are small, or many operators have
    /// a watermark to pass on, fewer of them cost less, and windows fire up to so much later. The end of the input does
    /// not wait.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use flow_runtime::watermark::*;
    /// let strategy = bounded(Duration::from_secs(5)).with_interval(Duration::from_millis(200));
    /// ```
    fn with_interval(self, span: Duration) -> Watched<Self>
    where
        Self: Sized,
    {
        Watched { interval: Some(span), ..Watched::of(self) }
    }

    /// The same, where a split whose watermark is more than `span` ahead of the slowest one of its source, in whichever
    /// subtask, is not read until the others have caught up. Otherwise windows hold all that it brings meanwhile.
    ///
    /// Right behind a source, and together with [`with_idleness`](Self::with_idleness): nobody waits for a split that
    /// is idle or read to its end. What was fetched before a split had to wait still comes, a few batches. A source that
    /// cannot leave out single splits ([`SourceReader::pause`](crate::source::SourceReader::pause)) waits when all those
    /// of a subtask are ahead.
    fn with_alignment(self, span: Duration) -> Watched<Self>
    where
        Self: Sized,
    {
        Watched { alignment: Some(span), ..Watched::of(self) }
    }

    /// The same, where a timestamp that is more than `span` ahead of this machine's clock is an error: a device whose
    /// clock is wrong by a year must not end the windows of all others. With `.on_error(skip)` such records are skipped
    /// and counted.
    fn with_max_ahead(self, span: Duration) -> Watched<Self>
    where
        Self: Sized,
    {
        Watched { max_ahead: Some(span), ..Watched::of(self) }
    }
}

/// Makes the watermarks of one split.
pub trait WatermarkGenerator: 'static {
    /// A record was read.
    fn on_record(&mut self, stamp: Stamp);

    /// The clock says so: before each batch, and after it, and, while no records come, once per
    /// [period](WatermarkStrategy::period). Only where there is a period.
    fn on_clock(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// No record with this timestamp or an earlier one is expected any more; `None` if nothing can be said yet. Asked
    /// after each batch. One that is lower than before has no effect.
    fn watermark(&mut self) -> Option<Watermark>;
}

/// See [`bounded`].
#[derive(Clone, Debug)]
pub struct BoundedOutOfOrderness(Duration);

/// Records come at most so much later than others with a higher timestamp: the watermark is the highest timestamp less
/// the bound and one millisecond. In a pipeline the bound may be a text, `bounded("5s")`, checked at compile time.
///
/// ```
/// # use std::time::Duration;
/// # use flow_runtime::{time::*, watermark::*};
/// let mut generator = bounded(Duration::from_secs(5)).generator();
/// generator.on_record(Stamp::at(Timestamp::from_millis(20_000)));
/// assert_eq!(generator.watermark(), Some(Watermark::new(Timestamp::from_millis(14_999))));
/// ```
pub fn bounded(bound: Duration) -> BoundedOutOfOrderness {
    BoundedOutOfOrderness(bound)
}

/// See [`monotonous`].
#[derive(Clone, Copy, Debug)]
pub struct Monotonous;

/// The timestamps of a split only grow: `bounded` by nothing.
pub fn monotonous() -> Monotonous {
    Monotonous
}

/// The generator of [`bounded`] and [`monotonous`].
#[derive(Clone, Debug)]
pub struct Newest {
    /// The least of all before the first one: a record of that time says nothing either.
    newest: Timestamp,
    bound: Duration,
}

impl WatermarkStrategy for BoundedOutOfOrderness {
    type Generator = Newest;

    fn generator(&self) -> Newest {
        Newest { newest: Timestamp::MIN, bound: self.0 }
    }
}

impl WatermarkStrategy for Monotonous {
    type Generator = Newest;

    fn generator(&self) -> Newest {
        Newest { newest: Timestamp::MIN, bound: Duration::ZERO }
    }
}

impl WatermarkGenerator for Newest {
    #[inline(always)]
    fn on_record(&mut self, stamp: Stamp) {
        self.newest = self.newest.max(stamp.time);
    }

    fn watermark(&mut self) -> Option<Watermark> {
        (self.newest > Timestamp::MIN).then(|| Watermark::bounded(self.newest, self.bound))
    }
}

/// See [`punctuated`].
#[derive(Clone, Copy, Debug)]
pub struct Punctuated;

/// Some records say up to when the stream is complete. The closure of `.watermarks(..)` returns a pair: the record's
/// timestamp, and that time where it says one.
///
/// ```
/// # use flow_runtime::{time::*, watermark::*};
/// let mut generator = punctuated().generator();
/// generator.on_record((20_000i64, None::<i64>).stamp()?);
/// assert_eq!(generator.watermark(), None);
/// generator.on_record((21_000i64, Some(20_000i64)).stamp()?);
/// assert_eq!(generator.watermark(), Some(Watermark::new(Timestamp::from_millis(20_000))));
/// # Ok::<_, flow_runtime::error::BoxError>(())
/// ```
pub fn punctuated() -> Punctuated {
    Punctuated
}

/// The generator of [`punctuated`].
#[derive(Clone, Debug)]
pub struct LastPunctuation(Option<Timestamp>);

impl WatermarkStrategy for Punctuated {
    type Generator = LastPunctuation;

    fn generator(&self) -> LastPunctuation {
        LastPunctuation(None)
    }
}

impl WatermarkGenerator for LastPunctuation {
    #[inline(always)]
    fn on_record(&mut self, stamp: Stamp) {
        self.0 = self.0.max(stamp.punctuation);
    }

    fn watermark(&mut self) -> Option<Watermark> {
        self.0.map(Watermark::new)
    }
}

/// A strategy with [`idleness`](WatermarkStrategy::with_idleness), a limit on
/// [timestamps ahead](WatermarkStrategy::with_max_ahead), [alignment](WatermarkStrategy::with_alignment), or an
/// [interval](WatermarkStrategy::with_interval).
#[derive(Clone, Debug)]
pub struct Watched<S> {
    inner: S,
    idleness: Option<Duration>,
    max_ahead: Option<Duration>,
    alignment: Option<Duration>,
    interval: Option<Duration>,
}

impl<S> Watched<S> {
    fn of(inner: S) -> Self {
        Watched { inner, idleness: None, max_ahead: None, alignment: None, interval: None }
    }
}

/// Below this a pause between two batches would count.
const LEAST_IDLENESS: Duration = Duration::from_millis(10);

impl<S: WatermarkStrategy> WatermarkStrategy for Watched<S> {
    type Generator = S::Generator;

    fn generator(&self) -> S::Generator {
        self.inner.generator()
    }

    fn idleness(&self) -> Option<Duration> {
        self.idleness.or_else(|| self.inner.idleness())
    }

    fn max_ahead(&self) -> Option<Duration> {
        self.max_ahead.or_else(|| self.inner.max_ahead())
    }

    fn alignment(&self) -> Option<Duration> {
        self.alignment.or_else(|| self.inner.alignment())
    }

    fn period(&self) -> Option<Duration> {
        self.inner.period()
    }

    fn interval(&self) -> Option<Duration> {
        self.interval.or_else(|| self.inner.interval())
    }

    fn check(&self) -> Result<(), BoxError> {
        match self.idleness {
            Some(short) if short < LEAST_IDLENESS => {
                Err(format!("an idleness of {short:?}: at least {LEAST_IDLENESS:?}").into())
            }
            _ => self.inner.check(),
        }
    }
}
