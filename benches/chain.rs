//! A fused chain of map, filter and map over numbers, against the loop that one would write by hand.

mod common;

use common::{Bench, Seen, Tally, check, size};
use flow::{collection, pipeline, worker};

#[pipeline(guarantee = at_least_once)]
fn chain(records: u64, seen: &Seen) {
    source(collection::range(0..records))
        .map(|x| x * 3 + 1)
        .filter(|x| x % 7 != 0)
        .map(|x| x ^ (x >> 3))
        .sink(Tally(seen.clone()));
}

fn floor(records: u64) -> u64 {
    let (mut count, mut sum) = (0u64, 0u64);
    for x in 0..std::hint::black_box(records) {
        let x = x * 3 + 1;
        if x % 7 != 0 {
            count += 1;
            sum = sum.wrapping_add(x ^ (x >> 3));
        }
    }
    check(count, sum)
}

fn flow(records: u64, parallelism: usize) -> u64 {
    let seen = Seen::default();
    let job = chain(records, &seen);
    let config = worker::Config::with_parallelism(job.plan(), parallelism);
    worker::run(&job, &config).expect("the job runs");
    seen.take()
}

fn main() {
    let records = size("FLOW_BENCH_RECORDS", 100_000_000);
    let mut bench = Bench::new("chain", "map, filter and map over u64, fused into one loop.");
    bench
        .case("chain of map, filter, map", records)
        .way("floor: a loop", move || floor(records))
        .way("flow, parallelism 1", move || flow(records, 1))
        .way("flow, parallelism 2", move || flow(records, 2));
    bench.run();
}
