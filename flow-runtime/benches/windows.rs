//! The window operator beside loops written by hand over the same records: sums per key, from 10 M records of 10,000
//! keys, 100 records per millisecond of event time, with a watermark every second of it.
//!
//! To look into the operator alone, with a profiler; whole pipelines are measured by `cargo bench --bench windows`.
//!
//! ```text
//! cargo bench -p flow-runtime --bench windows                        # all
//! cargo bench -p flow-runtime --bench windows -- 'tumbling 10 s, flow' 2000000
//! ```

use std::{
    collections::BTreeMap,
    hint::black_box,
    time::{Duration, Instant},
};

use flow_runtime::{
    time::{Timestamp, Watermark},
    window::{
        Definition, Windows,
        aggregate::{Itself, sum},
        evict, session, sliding, tumbling, windows,
    },
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

const KEYS: u64 = 10_000;
const PER_MILLI: u64 = 100;
const SECOND: Duration = Duration::from_secs(1);

fn main() {
    // `cargo test --benches` only asks whether it runs.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let records = if arguments.iter().any(|argument| argument == "--bench") { 10_000_000 } else { 100_000 };
    let numbers = arguments.iter().find_map(|argument| argument.parse().ok());
    let only =
        arguments.iter().find(|argument| !argument.starts_with("--") && argument.parse::<u64>().is_err());
    let run = Run { only: only.cloned(), records: numbers.unwrap_or(records) };
    run.say("tumbling 10 s, by hand, in order", by_hand);
    run.say("tumbling 10 s, by hand", |n| by_window(10, 10, n));
    run.say("tumbling 10 s, flow", |n| operator(windows(tumbling(10 * SECOND)).aggregate(sum(Itself)), n));
    for size in [1, 10] {
        let size: u32 = size;
        let spec = || windows(sliding(size * SECOND, SECOND)).aggregate(sum(Itself));
        run.say(&format!("sliding {size} s each 1 s, by hand"), |n| by_window(size as i64, 1, n));
        run.say(&format!("sliding {size} s each 1 s, flow"), |n| operator(spec(), n));
    }
    run.say("session 80 ms, flow", |n| {
        operator(windows(session(SECOND * 8 / 100)).aggregate(sum(Itself)), n)
    });
    run.say("session 1 s, flow", |n| operator(windows(session(SECOND)).aggregate(sum(Itself)), n));
    let kept = windows(tumbling(SECOND)).evictor(evict::count(u64::MAX)).aggregate(sum(Itself));
    run.say("tumbling 1 s, all records kept, flow", |n| operator(kept, n));
}

struct Run {
    only: Option<String>,
    records: u64,
}

impl Run {
    fn say(&self, name: &str, run: impl FnOnce(u64) -> u64) {
        if self.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        let start = Instant::now();
        let results = run(self.records);
        let nanos = start.elapsed().as_nanos() as f64 / self.records as f64;
        println!("{name:36} {nanos:8.1} ns per record   ({results} results)");
    }
}

/// The key and the time of a record.
#[inline(always)]
fn record(n: u64) -> (u64, u64) {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS, n / PER_MILLI)
}

fn operator<S: Definition<u64, u64>>(spec: S, records: u64) -> u64 {
    let windows = Windows::detached(spec).expect("the windows make sense");
    let w = &mut windows.borrow_mut();
    let (mut results, mut next) = (0, 1000);
    for n in 0..records {
        let (key, time) = record(n);
        if time == next {
            w.advance(Watermark::new(Timestamp::from_millis(next as i64 - 1))).expect("sums fit");
            results += w.fired().map(black_box).count() as u64;
            next += 1000;
        }
        w.add(&key, Timestamp::from_millis(time as i64), n).expect("sums fit");
    }
    w.advance(Watermark::MAX).expect("sums fit");
    results + w.fired().map(black_box).count() as u64
}

/// A sum per window and key, for records out of order: one map, and per end of a window its keys.
fn by_window(size: i64, slide: i64, records: u64) -> u64 {
    let (size, slide) = (size * 1000, slide * 1000);
    let mut sums: HashMap<(u64, i64), u64, FixedState> = HashMap::default();
    let mut ends: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    let (mut results, mut next) = (0, 1000);
    for n in 0..records {
        let (key, time) = record(n);
        if time == next {
            results += fire(&mut sums, &mut ends, size, next as i64 - 1);
            next += 1000;
        }
        let time = time as i64;
        let mut start = time - time.rem_euclid(slide);
        while start > time - size {
            let sum = sums.entry((key, start)).or_insert_with(|| {
                ends.entry(start + size).or_default().push(key);
                0
            });
            *sum = sum.checked_add(n).expect("sums fit");
            start -= slide;
        }
    }
    results + fire(&mut sums, &mut ends, size, i64::MAX)
}

/// What is over at a watermark.
fn fire(
    sums: &mut HashMap<(u64, i64), u64, FixedState>,
    ends: &mut BTreeMap<i64, Vec<u64>>,
    size: i64,
    watermark: i64,
) -> u64 {
    let mut results = 0;
    while let Some(first) = ends.first_entry().filter(|first| first.key() - 1 <= watermark) {
        let (end, keys) = first.remove_entry();
        for key in keys {
            results += u64::from(black_box(sums.remove(&(key, end - size))).is_some());
        }
    }
    results
}

/// A map per window, which is what one would write for records in order.
fn by_hand(records: u64) -> u64 {
    let mut sums: HashMap<u64, u64, FixedState> = HashMap::default();
    let (mut results, mut end) = (0, 10_000);
    for n in 0..records {
        let (key, time) = record(n);
        if time >= end {
            results += sums.drain().map(black_box).count() as u64;
            end += 10_000;
        }
        let sum = sums.entry(key).or_insert(0);
        *sum = sum.checked_add(n).expect("sums fit");
    }
    results + sums.drain().map(black_box).count() as u64
}
