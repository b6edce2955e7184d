//! A running count per key, with so many keys that they are not in the processor's caches, against a map and a loop
//! written by hand, with the same hasher. What it costs to take a checkpoint of all of it each second is in `state.rs`
//! for the pauses, and here for throughput, processor time and memory.

mod common;

use std::{thread, time::Duration};

use common::{Bench, Seen, Tally, check, size};
use flow::{collection, pipeline, worker};
use hashbrown::HashMap;

/// Without checkpoints, since nothing is asked for that would need them.
#[pipeline(guarantee = at_most_once)]
fn counts(keys: u64, records: u64, seen: &Seen) {
    let numbers = source(collection::iterate(move || sequence(keys, records)));
    numbers.key_by(|key| *key).count().sink(Tally(seen.clone()));
}

#[pipeline]
fn counts_exactly_once(keys: u64, records: u64, seen: &Seen) {
    let numbers = source(collection::iterate(move || sequence(keys, records)));
    numbers.key_by(|key| *key).count().sink(Tally(seen.clone()));
}

/// The keys as texts.
#[derive(Clone, Copy)]
struct Names(&'static [String]);

#[pipeline(guarantee = at_most_once)]
fn sums(names: Names, records: u64, seen: &Seen) {
    let keys = names.0.len() as u64;
    let numbers = source(collection::iterate(move || numbers(keys, records)));
    let amounts = numbers.map(|n| (names.0[n as usize].as_str(), n));
    amounts.key_by(|(name, _)| *name).sum(|(_, amount)| *amount).sink(Tally(seen.clone()));
}

/// A stride without a common factor visits every key, and none near the one before.
fn numbers(keys: u64, records: u64) -> impl Iterator<Item = u64> + Send {
    (0..records).map(move |n| n.wrapping_mul(7_368_787) % keys)
}

fn sequence(keys: u64, records: u64) -> impl Iterator<Item = u64> + Send {
    numbers(keys, records).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

type Map<K> = HashMap<K, u64, foldhash::fast::FixedState>;

fn floor(keys: u64, records: u64) -> u64 {
    let (mut map, mut sum) = (Map::default(), 0u64);
    for key in sequence(keys, records) {
        let count = map.entry(key).or_insert(0);
        *count += 1;
        sum = sum.wrapping_add(*count);
    }
    check(records, sum)
}

/// What two threads come to that share nothing, each with half of the keys: what of a job's time at parallelism 2 is the
/// machine's doing.
fn floor_in_two(keys: u64, records: u64) -> u64 {
    let half = move |first: u64| {
        let (mut map, mut sum) = (Map::default(), 0u64);
        for n in numbers(keys / 2, records / 2) {
            let count = map.entry((first + n).wrapping_mul(0x9e37_79b9_7f4a_7c15)).or_insert(0);
            *count += 1;
            sum = sum.wrapping_add(*count);
        }
        sum
    };
    let other = thread::spawn(move || half(keys / 2));
    let sum = half(0).wrapping_add(other.join().expect("the other half is counted"));
    check(records, sum)
}

fn floor_of_names(names: Names, records: u64) -> u64 {
    let (mut map, mut sum) = (Map::<String>::default(), 0u64);
    for n in numbers(names.0.len() as u64, records) {
        let total = map.entry_ref(names.0[n as usize].as_str()).or_insert(0);
        *total += n;
        sum = sum.wrapping_add(*total);
    }
    check(records, sum)
}

fn names(keys: u64) -> Names {
    Names((0..keys).map(|n| format!("user {n}")).collect::<Vec<_>>().leak())
}

fn flow(keys: u64, records: u64, parallelism: usize) -> u64 {
    let seen = Seen::default();
    let job = counts(keys, records, &seen);
    worker::run(&job, &worker::Config::with_parallelism(job.plan(), parallelism)).expect("the job runs");
    seen.take()
}

fn exactly_once(keys: u64, records: u64, parallelism: usize) -> u64 {
    let seen = Seen::default();
    let job = counts_exactly_once(keys, records, &seen);
    let mut config = worker::Config::with_parallelism(job.plan(), parallelism);
    config.checkpoint_interval = Some(Duration::from_secs(1));
    let directory = tempfile::tempdir().expect("a temporary directory");
    config.checkpoint_dir = Some(directory.path().display().to_string());
    worker::run(&job, &config).expect("the job runs");
    seen.take()
}

fn flow_of_names(names: Names, records: u64, parallelism: usize) -> u64 {
    let seen = Seen::default();
    let job = sums(names, records, &seen);
    worker::run(&job, &worker::Config::with_parallelism(job.plan(), parallelism)).expect("the job runs");
    seen.take()
}

fn main() {
    let records = size("FLOW_BENCH_RECORDS", 40_000_000);
    let mut bench = Bench::new(
        "keyed",
        "A running count per key. The case of one key says what memory the programs take without any; what is above \
         it, by the number of keys, is the memory of a key. In the cases of known keys each key has come once before the \
         records that are measured. Exactly once takes a checkpoint each second and at the end, \
         here always of all keys, and its copies are part of the memory.",
    );
    for (title, keys) in [("one key", 1), ("1 M keys", 1_000_000), ("10 M keys", 10_000_000)] {
        bench
            .case(title, records)
            .way("floor: a map and a loop", move || floor(keys, records))
            .way("flow, parallelism 1", move || flow(keys, records, 1))
            .way("flow, parallelism 1, exactly once each second", move || exactly_once(keys, records, 1))
            .way("flow, parallelism 2", move || flow(keys, records, 2))
            .way("flow, parallelism 2, exactly once each second", move || exactly_once(keys, records, 2));
    }
    for (title, keys) in [("1 M known keys", 1_000_000), ("10 M known keys", 10_000_000)] {
        bench
            .case_beyond(title, keys, records)
            .way_over("floor: a map and a loop", move |records| floor(keys, records))
            .way_over("floor, two threads, half of the keys each", move |records| floor_in_two(keys, records))
            .way_over("flow, parallelism 1", move |records| flow(keys, records, 1))
            .way_over("flow, parallelism 2", move |records| flow(keys, records, 2));
    }
    let keys = 1_000_000;
    let all = move || names(keys);
    bench
        .case("1 M short texts", records)
        .prepared("floor: a map and a loop", all, move |names| floor_of_names(names, records))
        .prepared("flow, parallelism 1", all, move |names| flow_of_names(names, records, 1))
        .prepared("flow, parallelism 2", all, move |names| flow_of_names(names, records, 2));
    bench.run();
}
