//! Windows and joins in whole pipelines, from a source of numbers to a sink that adds up, beside loops written by hand
//! that give the same results for records out of order: same hash maps, same hasher, same watermarks.

mod common;
#[path = "windows/floor.rs"]
mod floor;

use common::{Bench, Seen, Tally, size};
use flow::{
    Definition, Job, collection, pipeline,
    watermark::bounded,
    window::{session, sliding, tumbling},
    worker,
};

/// Records come up to so much too late, in milliseconds, and watermarks allow for twice that.
const LATE: u64 = 500;
const KEYS: u64 = 10_000;

#[inline(always)]
fn mix(n: u64) -> u64 {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// 100 records per millisecond.
#[inline(always)]
fn time(n: u64) -> i64 {
    (n / 100) as i64 - (mix(n) >> 40) as i64 % LATE as i64
}

#[inline(always)]
fn key(n: u64) -> u64 {
    mix(n) % KEYS
}

/// A thousand keys are busy for a second, and quiet for nine.
#[inline(always)]
fn busy_key(n: u64) -> u64 {
    n / 100_000 % 10 * 1000 + mix(n) % 1000
}

/// Half as many keys as records: nearly all are new.
#[inline(always)]
fn new_key(n: u64) -> u64 {
    mix(n / 2)
}

/// Of each of two streams 20 records per millisecond.
#[inline(always)]
fn side_time(n: u64) -> i64 {
    (n / 20) as i64 - (mix(n) >> 40) as i64 % LATE as i64
}

/// A record of the right stream that has as little to do with the one on the left of the same number as with others.
#[inline(always)]
fn of_right(n: u64) -> u64 {
    n ^ 0x5555
}

#[pipeline]
fn tumbled(records: u64, seen: &Seen) {
    source(collection::iterate(move || 0..records))
        .watermarks(bounded("1s"), |n| time(*n))
        .key_by(|n| key(*n))
        .window(tumbling("10s"))
        .sum(|n| *n)
        .sink(Tally(seen.clone()));
}

#[pipeline]
fn tumbled_often(records: u64, seen: &Seen) {
    source(collection::iterate(move || 0..records))
        .watermarks(bounded("1s"), |n| time(*n))
        .key_by(|n| key(*n))
        .window(tumbling("1s"))
        .sum(|n| *n)
        .sink(Tally(seen.clone()));
}

#[pipeline]
fn slid_without_overlap(records: u64, seen: &Seen) {
    source(collection::iterate(move || 0..records))
        .watermarks(bounded("1s"), |n| time(*n))
        .key_by(|n| key(*n))
        .window(sliding("1s", "1s"))
        .sum(|n| *n)
        .sink(Tally(seen.clone()));
}

#[pipeline]
fn slid(records: u64, seen: &Seen) {
    source(collection::iterate(move || 0..records))
        .watermarks(bounded("1s"), |n| time(*n))
        .key_by(|n| key(*n))
        .window(sliding("10s", "1s"))
        .sum(|n| *n)
        .sink(Tally(seen.clone()));
}

#[pipeline]
fn sessions(records: u64, seen: &Seen) {
    source(collection::iterate(move || 0..records))
        .watermarks(bounded("1s"), |n| time(*n))
        .key_by(|n| busy_key(*n))
        .window(session("2s"))
        .sum(|n| *n)
        .sink(Tally(seen.clone()));
}

#[pipeline]
fn many_open(records: u64, seen: &Seen) {
    source(collection::iterate(move || 0..records))
        .watermarks(bounded("1s"), |n| time(*n))
        .key_by(|n| new_key(*n))
        .window(tumbling("1h"))
        .sum(|n| *n)
        .sink(Tally(seen.clone()));
}

#[pipeline]
fn joined_in_windows(records: u64, seen: &Seen) {
    let left =
        source(collection::iterate(move || 0..records / 2)).watermarks(bounded("1s"), |n| side_time(*n));
    let right = source(collection::iterate(move || 0..records / 2))
        .map(of_right)
        .watermarks(bounded("1s"), |n| side_time(of_right(*n)));
    left.key_by(|n| key(*n))
        .join(right.key_by(|n| key(*n)))
        .window(tumbling("1s"))
        .with(|_, left, right| left ^ right)
        .sink(Tally(seen.clone()));
}

#[pipeline]
fn joined_between(records: u64, seen: &Seen) {
    let left =
        source(collection::iterate(move || 0..records / 2)).watermarks(bounded("1s"), |n| side_time(*n));
    let right = source(collection::iterate(move || 0..records / 2))
        .map(of_right)
        .watermarks(bounded("1s"), |n| side_time(of_right(*n)));
    left.key_by(|n| key(*n))
        .interval_join(right.key_by(|n| key(*n)))
        .between("-250ms", "250ms")
        .with(|_, left, right| left ^ right)
        .sink(Tally(seen.clone()));
}

fn flow<D: Definition>(make: impl Fn(u64, &Seen) -> Job<D>, records: u64, parallelism: usize) -> u64 {
    let seen = Seen::default();
    let job = make(records, &seen);
    let config = worker::Config::with_parallelism(job.plan(), parallelism);
    worker::run(&job, &config).expect("the job runs");
    seen.take()
}

fn main() {
    let records = size("FLOW_BENCH_RECORDS", 10_000_000);
    let mut bench = Bench::new(
        "windows",
        "Sums per key of 10,000 keys in windows, and joins; records come up to half a second too late.",
    );
    bench
        .case("tumbling 10 s", records)
        .way("floor: a map by key and window", move || floor::by_window(10, 10, key, records))
        .way("flow, parallelism 1", move || flow(tumbled, records, 1))
        .way("flow, parallelism 2", move || flow(tumbled, records, 2));
    bench
        .case("tumbling 1 s", records)
        .way("floor: a map by key and window", move || floor::by_window(1, 1, key, records))
        .way("flow, parallelism 1", move || flow(tumbled_often, records, 1))
        .way("flow, parallelism 2", move || flow(tumbled_often, records, 2));
    bench
        .case("sliding 1 s each 1 s", records)
        .way("floor: a map by key and window", move || floor::by_window(1, 1, key, records))
        .way("flow, parallelism 1", move || flow(slid_without_overlap, records, 1))
        .way("flow, parallelism 2", move || flow(slid_without_overlap, records, 2));
    bench
        .case("sliding 10 s each 1 s", records)
        .way("floor: a map by key and window", move || floor::by_window(10, 1, key, records))
        .way("flow, parallelism 1", move || flow(slid, records, 1))
        .way("flow, parallelism 2", move || flow(slid, records, 2));
    bench
        .case("sessions with a gap of 2 s", records)
        .way("floor: a map by key of the newest session", move || floor::sessions(2000, busy_key, records))
        .way("flow, parallelism 1", move || flow(sessions, records, 1))
        .way("flow, parallelism 2", move || flow(sessions, records, 2));
    let open = records / 2;
    bench
        .case(format!("tumbling 1 h, {open} windows open at the end"), records)
        .way("floor: a map by key and window", move || floor::by_window(3600, 3600, new_key, records))
        .way("flow, parallelism 1", move || flow(many_open, records, 1))
        .way("flow, parallelism 2", move || flow(many_open, records, 2));
    bench
        .case("join in windows of 1 s", records)
        .way("floor: two lists by key and window", move || floor::joined_in_windows(1000, records))
        .way("flow, parallelism 1", move || flow(joined_in_windows, records, 1))
        .way("flow, parallelism 2", move || flow(joined_in_windows, records, 2));
    bench
        .case("join of what is up to 250 ms apart", records)
        .way("floor: two lists by key", move || floor::joined_between(250, records))
        .way("flow, parallelism 1", move || flow(joined_between, records, 1))
        .way("flow, parallelism 2", move || flow(joined_between, records, 2));
    bench.run();
}
