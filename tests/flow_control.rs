//! A fast source and a slow rest: memory stays bounded, and checkpoints complete.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use common::{Collected, Fault, Fuse, Gate, Script, Scripted, config, often, start};
use flow::{
    Config, Definition, Ending, Job,
    collection::{generate, iterate},
    pipeline,
};

/// Counts the records between a place in the chain and the sink.
#[derive(Clone)]
struct Gauge {
    entered: Arc<AtomicU64>,
    most: Arc<AtomicU64>,
    out: Collected<u64>,
}

impl Gauge {
    fn new() -> Self {
        // The sink takes 256 records at a time, and a millisecond for them.
        let out = Collected::new().slow(Duration::from_millis(1));
        Gauge { entered: Arc::default(), most: Arc::default(), out }
    }

    /// A record goes by.
    fn enter(&self) {
        let entered = self.entered.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(entered.saturating_sub(self.out.written()), Ordering::SeqCst);
    }

    /// Runs the endless job until the sink has taken so many records, and returns the most that were under way.
    #[track_caller]
    fn most_under_way<D: Definition + 'static>(&self, job: Job<D>, config: Config, records: u64) -> u64 {
        let running = start(job, config);
        self.out.wait_for(|visible| visible.len() as u64 >= records);
        assert_eq!(running.stop().ending, Ending::Stopped);
        assert_eq!(self.entered.load(Ordering::SeqCst), self.out.len() as u64, "nothing is lost");
        self.most.load(Ordering::SeqCst)
    }
}

/// What a batch of the source holds.
const BATCH: u64 = 16_384;
/// What an edge holds per sender and receiver: 16 parcels of 1024 records.
const EDGE: u64 = 16 * 1024;

#[pipeline(guarantee = at_least_once)]
fn fused(gauge: Gauge) {
    source(iterate(|| 0u64..)).inspect(|_| gauge.enter()).sink(gauge.out.at_once());
}

#[test]
fn a_slow_sink_in_the_chain_of_the_source() {
    let gauge = Gauge::new();
    let job = fused(gauge.clone());
    let config = config(&job, 1);
    let most = gauge.most_under_way(job, config, 3 * BATCH);
    assert!(most <= 2 * BATCH, "{most} records were under way");
}

#[pipeline(guarantee = at_least_once)]
fn exchanged(gauge: Gauge) {
    source(iterate(|| 0u64..)).inspect(|_| gauge.enter()).rebalance().sink(gauge.out.at_once());
}

#[test]
fn a_slow_sink_behind_an_exchange() {
    let gauge = Gauge::new();
    let job = exchanged(gauge.clone());
    let config = config(&job, 3);
    let most = gauge.most_under_way(job, config, 3 * 3 * EDGE);
    assert!(most <= 3 * EDGE + 2 * BATCH, "{most} records were under way");
}

#[pipeline(guarantee = at_least_once)]
fn skewed(gauge: Gauge) {
    let ones = source(iterate(|| 0u64..)).inspect(|_| gauge.enter()).key_by(|_| 7u64);
    ones.count().map(|(_, n)| n).sink(gauge.out.at_once());
}

#[test]
fn all_records_have_one_key() {
    let gauge = Gauge::new();
    let job = skewed(gauge.clone());
    let config = config(&job, 3);
    let most = gauge.most_under_way(job, config, 3 * EDGE);
    assert!(most <= 3 * EDGE + 2 * BATCH, "{most} records were under way");
}

#[pipeline(guarantee = at_least_once)]
fn amplified(gauge: Gauge) {
    let seeds = source(iterate(|| 0u64..)).rebalance();
    let many = seeds.flat_map(|n| (0..8).map(move |i| n + i)).inspect(|_| gauge.enter());
    many.rebalance().sink(gauge.out.at_once());
}

#[test]
fn an_inner_chain_makes_many_of_one() {
    let gauge = Gauge::new();
    let job = amplified(gauge.clone());
    let config = config(&job, 2);
    let most = gauge.most_under_way(job, config, 6 * EDGE);
    // Each of two subtasks fills its edges, and then goes on to the end of the parcel that it has begun.
    assert!(most <= 2 * (2 * EDGE + 2 * 8 * 1024), "{most} records were under way");
}

/// Of the counts of a fast source, a few are enough.
fn hundredth(count: u64) -> bool {
    count.is_multiple_of(100)
}

#[track_caller]
fn assert_in_order(out: &Collected<(u64, u64)>) {
    for (key, counts) in out.by_key().into_iter().filter(|(key, _)| *key < 1000) {
        assert_eq!(counts, (1..=counts.len() as u64).map(|n| 100 * n).collect::<Vec<_>>(), "key {key}");
    }
}

#[pipeline]
fn uneven(slow: Scripted<u64>, out: Collected<(u64, u64)>) {
    let fast = source(iterate(|| 0u64..)).map(|n| n % 100);
    let idle = source(slow);
    let counts = fast.union(idle).key_by(|n| *n).count();
    counts.filter(|(key, n)| hundredth(*n) || *key >= 1000).sink(out.transactional());
}

#[test]
fn checkpoints_complete_while_one_source_is_idle_and_another_fast() {
    for parallelism in [1, 2, 3] {
        let (gate, out) = (Gate::closed(), Collected::new());
        let idle = Script::new().records([1000]).wait(&gate).records([1001]);
        let job = uneven(Scripted::new([idle]), out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        out.wait_for_commits(10);
        gate.open();
        out.wait_for(|records| records.iter().rev().any(|(key, _)| *key == 1001));
        running.stop();
        assert_eq!(out.by_key()[&1000], [1]);
        assert_in_order(&out);
    }
}

#[pipeline]
fn behind(out: Collected<(u64, u64)>) {
    let numbers = source(generate(200_000, |n| n % 50).splits(4));
    let parted = numbers.partition_custom(|n, subtasks| (n % subtasks as u64) as usize, |n| *n);
    // One subtask of two takes its time.
    let worked = parted.inspect(|n| {
        if *n == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    let counts = worked.key_by(|n| *n).count();
    counts.filter(|(_, n)| hundredth(*n)).sink(out.transactional());
}

#[test]
fn checkpoints_complete_while_one_subtask_is_behind() {
    let out = Collected::new();
    let job = behind(out.clone());
    let config = often(&job, 2);
    let running = start(job, config);
    out.wait_for_commits(10);
    assert_eq!(running.stop().ending, Ending::Stopped);
    assert_in_order(&out);
}

#[pipeline]
fn diamond(out: Collected<(u64, u64)>) {
    let numbers = source(iterate(|| 0u64..)).map(|n| n % 100);
    let quick = numbers.filter(|n| n % 2 == 0).rebalance().map(|n| n);
    let slow = numbers.filter(|n| n % 2 == 1).rebalance().inspect(|n| {
        if *n == 1 {
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    let counts = quick.union(slow).key_by(|n| *n).count();
    counts.filter(|(_, n)| hundredth(*n)).sink(out.transactional());
}

#[test]
fn checkpoints_complete_where_a_quick_and_a_slow_branch_meet() {
    for parallelism in [1, 3] {
        let out = Collected::new();
        let job = diamond(out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        out.wait_for_commits(10);
        assert_eq!(running.stop().ending, Ending::Stopped);
        assert_in_order(&out);
    }
}

#[pipeline]
fn kept(out: Collected<(u64, u64)>) {
    source(generate(2_000, |n| n % 10)).key_by(|n| *n).count().sink(out.transactional());
}

/// What waits for its commit is in memory and in every checkpoint. When a server is away for long, the sink stops taking
/// records, and takes them again when the server is back.
#[test]
fn a_server_that_commits_nothing_holds_the_job_up() {
    let away = Fuse::always();
    let out = Collected::new().failing(Fault::CommitRetry, &away);
    let job = kept(out.clone());
    let config = often(&job, 1);
    let running = start(job, config);
    // As many as may wait.
    out.wait_for_pending(64);
    let settled = (0..100).find_map(|_| {
        let before = out.written();
        std::thread::sleep(Duration::from_millis(200));
        (out.written() == before).then_some(before)
    });
    assert!(settled.is_some(), "the sink goes on taking records");
    // Those that may be committed are counted, and a few more are on their way to that.
    assert!(out.pending() < 64 + 8, "{} transactions wait", out.pending());
    away.mend();
    out.wait_for_commits(80);
    assert_eq!(running.stop().ending, Ending::Stopped);
    for (key, counts) in out.by_key() {
        assert!(counts.iter().copied().eq(1..=counts.len() as u64), "key {key}: {counts:?}");
    }
}
