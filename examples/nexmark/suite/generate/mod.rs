//! Where events come from: event number `n` is the same whoever asks for it, and whenever.

mod full;
mod light;

pub(crate) use full::full;
pub(crate) use light::Light;

use super::model::Event;

/// When the first event happens: 50 seconds before midnight, so that a short run sees two days.
pub(crate) const BASE_TIME: i64 = 1_437_004_750_000;

/// Events per second of event time.
pub(crate) const RATE: u64 = 10_000;

/// Which generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Generator {
    /// The crate `nexmark`: every text is made up anew, which takes longer than most queries
    Nexmark,
    /// Numbers of the same distributions, and texts cut from one that is made once
    Light,
}

/// The first `number` events, in order.
pub(crate) fn events(generator: Generator, number: u64) -> Vec<Event> {
    match generator {
        Generator::Nexmark => full(0, 1).take(number as usize).collect(),
        Generator::Light => {
            let light = Light::shared();
            (0..number).map(|n| light.event(n)).collect()
        }
    }
}
