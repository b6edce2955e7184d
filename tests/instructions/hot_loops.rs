//! Runs one of the loops that matter, over so many records, or over a file of text: `hot_loops LOOP RECORDS|FILE`. It
//! prints a check value.
//!
//! Only the difference between runs of different lengths says something: what starts and ends a job is in both.

use std::{env, path::Path, process::ExitCode, time::Duration};

use flow::{
    Definition, Job, collection, file, pipeline,
    watermark::monotonous,
    window::{session, sliding, tumbling},
    worker,
};

#[path = "../../benches/common/tally.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the benchmarks, which use all of it")]
mod tally;

use tally::{Seen, Tally};

/// Many enough that their state does not stay in the nearest cache, few enough to be known soon.
const KEYS: u64 = 10_000;

/// The numbers, each as a key that is far from the one before.
fn keys(records: u64) -> impl Iterator<Item = u64> + Send {
    (0..records).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS)
}

/// A record with a time: a hundred in each millisecond.
fn timed(records: u64) -> impl Iterator<Item = (u64, i64)> + Send {
    keys(records).zip(0..).map(|(key, n)| (key, n / 100))
}

#[pipeline(guarantee = at_least_once)]
fn chain(records: u64, seen: &Seen) {
    source(collection::range(0..records))
        .map(|x| x * 3 + 1)
        .filter(|x| x % 7 != 0)
        .map(|x| x ^ (x >> 3))
        .sink(Tally(seen.clone()));
}

#[pipeline(guarantee = at_least_once)]
fn word_count(input: &Path, seen: &Seen) {
    let words = source(file::text(input.display().to_string()))
        .flat_map(|line| line.split_ascii_whitespace())
        .map(|word| (word, 1u64));
    words.key_by(|(word, _)| *word).sum(|(_, n)| *n).sink(Tally(seen.clone()));
}

#[pipeline(guarantee = at_least_once)]
fn keyed_count(records: u64, seen: &Seen) {
    let numbers = source(collection::iterate(move || keys(records)));
    numbers.key_by(|key| *key).count().sink(Tally(seen.clone()));
}

#[pipeline(guarantee = at_least_once)]
fn tumbling_windows(records: u64, seen: &Seen) {
    let events =
        source(collection::iterate(move || timed(records))).watermarks(monotonous(), |(_, time)| *time);
    events.key_by(|(key, _)| *key).window(tumbling("10s")).count().sink(Tally(seen.clone()));
}

#[pipeline(guarantee = at_least_once)]
fn session_windows(records: u64, seen: &Seen) {
    let events =
        source(collection::iterate(move || timed(records))).watermarks(monotonous(), |(_, time)| *time);
    events.key_by(|(key, _)| *key).window(session("50ms")).count().sink(Tally(seen.clone()));
}

#[pipeline(guarantee = at_least_once)]
fn sliding_windows(records: u64, seen: &Seen) {
    let events =
        source(collection::iterate(move || timed(records))).watermarks(monotonous(), |(_, time)| *time);
    events.key_by(|(key, _)| *key).window(sliding("1s", "1s")).count().sink(Tally(seen.clone()));
}

/// What is joined: ten in each millisecond and side, so that a second has one of each key on each side. Both sides are of
/// one source, for of two the one that starts first stays ahead, by as much as the machine likes; and how far it is ahead
/// decides how many windows are open.
fn seldom(records: u64) -> impl Iterator<Item = (u64, i64, bool)> + Send {
    keys(records / 2).zip(0..).flat_map(|(key, n)| [(key, n / 10, true), (key, n / 10, false)])
}

#[pipeline(guarantee = at_least_once)]
fn window_join(records: u64, seen: &Seen) {
    let both =
        source(collection::iterate(move || seldom(records))).watermarks(monotonous(), |(_, time, _)| *time);
    let left = both.filter(|(_, _, side)| *side);
    let right = both.filter(|(_, _, side)| !side);
    left.key_by(|(key, ..)| *key)
        .join(right.key_by(|(key, ..)| *key))
        .window(tumbling("1s"))
        .with(|key, (_, left, _), (_, right, _)| key ^ (left - right) as u64)
        .sink(Tally(seen.clone()));
}

#[pipeline(guarantee = at_least_once)]
fn interval_join(records: u64, seen: &Seen) {
    let both =
        source(collection::iterate(move || seldom(records))).watermarks(monotonous(), |(_, time, _)| *time);
    let left = both.filter(|(_, _, side)| *side);
    let right = both.filter(|(_, _, side)| !side);
    left.key_by(|(key, ..)| *key)
        .interval_join(right.key_by(|(key, ..)| *key))
        .between("-1s", "1s")
        .with(|key, (_, left, _), (_, right, _)| key ^ (left - right) as u64)
        .sink(Tally(seen.clone()));
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [name, what] = arguments.as_slice() else {
        eprintln!("usage: hot_loops LOOP RECORDS|FILE");
        return ExitCode::FAILURE;
    };
    let seen = Seen::default();
    if name == "word_count" {
        run(&word_count(Path::new(what), &seen));
    } else {
        let Ok(records) = what.parse::<u64>() else {
            eprintln!("`{what}` is not a number of records");
            return ExitCode::FAILURE;
        };
        match name.as_str() {
            "chain" => run(&chain(records, &seen)),
            "keyed_count" => run(&keyed_count(records, &seen)),
            "tumbling_windows" => run(&tumbling_windows(records, &seen)),
            "session_windows" => run(&session_windows(records, &seen)),
            "sliding_windows" => run(&sliding_windows(records, &seen)),
            "window_join" => run(&window_join(records, &seen)),
            "interval_join" => run(&interval_join(records, &seen)),
            _ => {
                eprintln!("there is no loop `{name}`");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{}", seen.take());
    ExitCode::SUCCESS
}

/// Runs a job in one subtask, without checkpoints.
fn run<D: Definition + 'static>(job: &Job<D>) {
    let mut config = worker::Config::with_parallelism(job.plan(), 1);
    // How many there are in a run would depend on how fast it is.
    config.checkpoint_interval = Some(Duration::from_secs(24 * 3600));
    worker::run(job, &config).expect("the job runs");
}
