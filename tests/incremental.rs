//! Checkpoints hold what has changed, are collected while records change it, and are exact all the same.

mod common;

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use common::{Collected, Fuse, Gate, Script, Scripted, often, run_with, start};
use flow::{Config, Definition, Ending, Job, pipeline};

/// So many keys come once, and then a twentieth of them again and again.
const KEYS: u64 = 20_000;
const RECORDS: u64 = 40_000;
/// Where the closure panics once, and where the first run stops.
const BAD: u64 = 32_001;
const STOP: u64 = 36_000;

fn key(n: u64) -> u64 {
    if n < KEYS { n } else { n * 7 % (KEYS / 20) }
}

#[pipeline]
fn exactly_once(input: Scripted<u64>, panic: Fuse, out: Collected<(u64, u64)>) {
    let numbers = source(input).inspect(|n| panic.panic(*n == BAD));
    numbers.key_by(|n| key(*n)).count().sink(out.transactional());
}

#[pipeline(guarantee = at_least_once)]
fn at_least_once(input: Scripted<u64>, panic: Fuse, out: Collected<(u64, u64)>) {
    let numbers = source(input).inspect(|n| panic.panic(*n == BAD));
    numbers.key_by(|n| key(*n)).count().sink(out.at_once());
}

/// The numbers in two splits, slowly enough for many checkpoints.
fn input(gate: &Gate) -> Scripted<u64> {
    let split = |half: u64| {
        let mut script = Script::new();
        for from in (0..RECORDS).step_by(1000) {
            if from == STOP {
                script = script.wait(gate);
            }
            let numbers = (from..from + 1000).filter(move |n| n % 2 == half);
            script = script.records(numbers).pause(Duration::from_millis(5));
        }
        script
    };
    Scripted::new([split(0), split(1)])
}

/// The counts that come out for each key when every record counts once.
fn expected(end: u64) -> BTreeMap<u64, Vec<u64>> {
    let mut counts = BTreeMap::<u64, Vec<u64>>::new();
    for n in 0..end {
        let counts = counts.entry(key(n)).or_default();
        counts.push(counts.len() as u64 + 1);
    }
    counts
}

fn in_dir<D: Definition>(job: &Job<D>, parallelism: usize, dir: &Path) -> Config {
    let checkpoint_dir = Some(dir.to_str().expect("a plain path").to_owned());
    Config { checkpoint_dir, retain: 1000, ..often(job, parallelism) }
}

/// How many of the checkpoints in a directory build on files of earlier ones.
fn incremental(dir: &Path) -> usize {
    manifests(dir).iter().filter(|manifest| manifest.contains("-changes.")).count()
}

fn manifests(dir: &Path) -> Vec<String> {
    let folders = fs::read_dir(dir).unwrap().map(|folder| folder.unwrap().path().join("manifest"));
    folders.filter_map(|manifest| fs::read_to_string(manifest).ok()).collect()
}

fn sorted(out: &Collected<(u64, u64)>) -> BTreeMap<u64, Vec<u64>> {
    let mut counts = out.by_key();
    counts.values_mut().for_each(|counts| counts.sort_unstable());
    counts
}

#[test]
fn a_job_that_fails_and_is_stopped_restores_from_changes() {
    for parallelisms in [[1, 2], [3, 1]] {
        let (dir, out, gate) = (tempfile::tempdir().unwrap(), Collected::new(), Gate::closed());
        let job = exactly_once(input(&gate), Fuse::once(), out.clone());
        let config = in_dir(&job, parallelisms[0], dir.path());
        let running = start(job, config);
        out.wait_for(|records| records.len() as u64 == STOP);
        let first = running.stop();
        assert_eq!((first.ending, first.restarts), (Ending::Stopped, 1));
        assert_eq!(sorted(&out), expected(STOP));
        assert!(incremental(dir.path()) > 1, "{:?}", manifests(dir.path()).len());

        gate.open();
        let job = exactly_once(input(&gate), Fuse::never(), out.clone());
        let config = in_dir(&job, parallelisms[1], dir.path());
        let second = run_with(job, config).expect("the job ends");
        assert_eq!(second.resumed_from, Some(first.checkpoint));
        assert_eq!(sorted(&out), expected(RECORDS), "{parallelisms:?}");
    }
}

#[test]
fn without_a_directory_a_failure_costs_no_record() {
    for parallelism in [1, 3] {
        let (out, gate) = (Collected::new(), Gate::closed());
        gate.open();
        let job = exactly_once(input(&gate), Fuse::once(), out.clone());
        let config = often(&job, parallelism);
        let summary = run_with(job, config).expect("the job ends");
        assert_eq!(summary.restarts, 1);
        assert_eq!(sorted(&out), expected(RECORDS));
    }
}

#[test]
fn checkpoints_that_are_not_aligned_are_restored_at_another_parallelism() {
    let (dir, out, gate) = (tempfile::tempdir().unwrap(), Collected::new(), Gate::closed());
    let job = at_least_once(input(&gate), Fuse::never(), out.clone());
    let config = in_dir(&job, 3, dir.path());
    let running = start(job, config);
    out.wait_for(|records| records.len() as u64 == STOP);
    assert_eq!(running.stop().ending, Ending::Stopped);
    assert!(incremental(dir.path()) > 1);
    gate.open();
    let job = at_least_once(input(&gate), Fuse::never(), out.clone());
    let config = in_dir(&job, 2, dir.path());
    run_with(job, config).expect("the job ends");
    // Nothing failed, so nothing came twice.
    assert_eq!(sorted(&out), expected(RECORDS));
}
