//! Helper functions that say what the pipeline says.
#![deny(warnings)]
#[path = "../support/log.rs"]
mod log;
use flow::{Stream, collection::range, file, pipeline};

/// One result per key.
#[pipeline(mode = batch)]
fn counted(numbers: Stream<u64>) -> Stream<(u64, u64)> {
    numbers.key_by(|n| n % 3).count()
}

/// With a sink that can repeat.
#[pipeline(guarantee = at_least_once, on_error = skip)]
fn logged(lines: Stream<String>) -> Stream<String> {
    lines.sink(log::Log);
    lines.map(|line| Ok(line.trim().parse::<u64>()?.to_string()))
}

/// Without state, in any mode.
#[pipeline]
fn doubled(numbers: Stream<u64>) -> Stream<u64> {
    numbers.map(|n| n * 2)
}

#[pipeline(mode = batch)]
fn batch() {
    let numbers = source(range(0..9));
    let twice = doubled(numbers);
    counted(twice).sink(file::to_tsv("out"));
}

#[pipeline(guarantee = at_least_once)]
fn streaming() {
    let lines = source(range(0..9)).map(|n| n.to_string());
    logged(lines).sink(file::to_lines("out"));
}

#[test]
fn compiles() {
    let _ = (batch(), streaming());
}
