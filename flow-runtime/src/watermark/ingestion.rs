//! The time at which records enter.

use std::time::Duration;

use super::{Stamp, WatermarkGenerator, WatermarkStrategy};
use crate::time::{Timestamp, Watermark};

/// Ingestion time: a record's timestamp is when it enters, by the clock, and the watermark follows the clock, also
/// while nothing comes. Nothing is late. In a pipeline: `.watermarks(ingestion())`, without a closure.
///
/// The records of a batch have the same timestamp. After a restart they never have an earlier one than before it.
pub fn ingestion() -> Ingestion {
    Ingestion
}

/// See [`ingestion`].
#[derive(Clone, Copy, Debug)]
pub struct Ingestion;

/// The generator of [`ingestion`].
#[derive(Clone, Debug)]
pub struct Entering(Option<Timestamp>);

/// How often the watermark follows while nothing comes.
const PERIOD: Duration = Duration::from_millis(50);

impl WatermarkStrategy for Ingestion {
    type Generator = Entering;

    fn generator(&self) -> Entering {
        Entering(None)
    }

    fn period(&self) -> Option<Duration> {
        Some(PERIOD)
    }
}

impl WatermarkGenerator for Entering {
    #[inline(always)]
    fn on_record(&mut self, _: Stamp) {}

    fn on_clock(&mut self, now: Timestamp) {
        self.0 = self.0.max(Some(now));
    }

    fn watermark(&mut self) -> Option<Watermark> {
        // More may come in this millisecond.
        self.0.map(|now| Watermark::new(now.plus_millis(-1)))
    }
}
