//! Event time and windows, in forms that no example has, clean under lints that a crate may deny.
#![deny(warnings, unused, unused_results, unused_qualifications, let_underscore_drop, missing_docs)]

use std::time::Duration;

use flow::{
    Stream,
    collection::{collection, range},
    file, pipeline,
    watermark::{bounded, monotonous},
    window::{Window, aggregate, calendar, count, evict, session, session_with, sliding, trigger, tumbling},
};

/// A helper with event time of its own.
#[pipeline]
pub fn per_hour(numbers: Stream<u64>, factor: u64) -> Stream<(u64, u64)> {
    let timed = numbers.watermarks(monotonous(), |n| *n);
    timed.key_by(|n| n % 2).window(tumbling("1h")).reduce(|a, b| a + b * factor)
}

fn label(key: &str, window: Window, n: u64) -> String {
    format!("{key} in {window}: {n}")
}

/// What is not in the examples.
#[pipeline(parallelism = 2)]
pub fn unusual(size: Duration, greeting: &str) {
    let mut seen = 0;
    let words = source(collection(["a b", "c"].map(str::to_owned)))
        .flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .map(|word| (word.len() as u64, word));
    let timed = words.watermarks(bounded(size).with_idleness("1m").with_max_ahead("1d"), |(time, _)| {
        seen += 1;
        Some(*time)
    });
    let by_word = timed.key_by(|(_, word)| word.as_str());
    by_word.window(sliding("1h", "10m").offset("5m")).count().with(label).sink(file::to_lines("labels"));
    by_word
        .window(session(size))
        .allowed_lateness(size)
        .process(|word, window, records| format!("{greeting} {word} {window} {}", records.len()))
        .uid("process")
        .sink(file::to_lines("processed"));
    by_word
        .window(session_with(|(time, _): &(u64, String)| Duration::from_secs(*time + 1)))
        .trigger(trigger::purging(trigger::count(2)))
        .aggregate((aggregate::count(), aggregate::max(|(_, word): &(u64, String)| word.len())))
        .map(|(word, (n, longest))| (word.to_owned(), n, longest))
        .sink(file::to_tsv("aggregated"));
    by_word
        .window(calendar::days("Europe/Berlin"))
        .evictor(evict::time("10m"))
        .process(|word, _, records| (word.to_owned(), records.timed().map(|(time, _)| time).max()))
        .map(|(word, last)| format!("{word} {last:?}"))
        .sink(file::to_lines("evicted"));
    let untimed = source(range(0..9));
    untimed.key_by(|n| n % 2).window(count(3)).min(|n| *n).name("least").sink(file::to_tsv("least"));
    let helped = per_hour(untimed, 3);
    helped.sink(file::to_tsv("helped"));
    // Nobody needs the event time here.
    untimed.watermarks(monotonous(), |n| *n).sink(file::to_lines("numbers"));
}

#[test]
fn compiles() {
    drop(unusual(Duration::from_secs(1), "hello"));
}
