//! What the benchmarks share: ways to do the same work, measured in interleaved rounds in processes of their own, a
//! report of all benchmarks, and a sink that only counts.

#![allow(dead_code, unused_imports, reason = "each benchmark uses a part")]

mod chart;
mod measure;
mod report;
mod services;
mod tally;

pub(crate) use measure::{Bench, Case};
pub(crate) use report::{Section, Table};
pub(crate) use services::service;
pub(crate) use tally::{Seen, Tally, Value, check};

/// A number from the environment, to shrink or grow a benchmark.
pub(crate) fn size(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, but must be a number")),
        Err(_) => default,
    }
}
