//! Whatever fails, the job goes back to its last checkpoint and its results stay exact; when it gives up, the error
//! says where it failed; and nothing ever hangs.

mod common;

use std::{collections::BTreeMap, time::Duration};

use common::{Collected, Fault, Fuse, Gate, Script, Scripted, config, often, run_with, start};
use flow::{Config, Ending, Error, Restart, Summary, collection::range, pipeline};

const PARALLELISMS: [usize; 2] = [1, 3];

/// The record at which closures fail.
const BAD: u64 = 250;

/// What may fail in [`sums`], each at the record [`BAD`].
#[derive(Clone, Debug)]
struct Traps {
    error: Fuse,
    panic: Fuse,
    key: Fuse,
    after: Fuse,
}

impl Traps {
    fn none() -> Self {
        Traps { error: Fuse::never(), panic: Fuse::never(), key: Fuse::never(), after: Fuse::never() }
    }
}

#[pipeline]
fn sums(input: Scripted<u64>, traps: Traps, out: Collected<(u64, u64)>) {
    let numbers = source(input)
        .map(|n| {
            traps.error.fail(n == BAD)?;
            Ok(n)
        })
        .inspect(|n| traps.panic.panic(*n == BAD));
    let sums = numbers
        .key_by(|n| {
            traps.key.panic(*n == BAD);
            n % 10
        })
        .sum(|n| *n);
    sums.inspect(|(_, sum)| traps.after.panic(*sum > 2100)).sink(out.transactional());
}

/// The numbers to 400 in two splits; a gate stands at 200.
fn input(gate: &Gate, fail: &Fuse, panic: &Fuse) -> Scripted<u64> {
    let split = |first: u64| {
        let numbers = |from, to| (from..to).filter(move |n| n % 2 == first);
        Script::new()
            .records(numbers(0, 100))
            .records(numbers(100, 200))
            .wait(gate)
            .records(numbers(200, 240))
            .fail(fail)
            .panic(panic)
            .records(numbers(240, 400))
    };
    Scripted::new([split(0), split(1)])
}

/// What comes out of [`sums`] when every record counts once.
fn expected() -> BTreeMap<u64, Vec<u64>> {
    let sum = |held: &mut u64, n: u64| {
        *held += n;
        Some(*held)
    };
    (0..10).map(|key| (key, (0..400).filter(|n| n % 10 == key).scan(0, sum).collect())).collect()
}

/// One way to fail.
#[derive(Debug)]
enum Failing {
    Closure(fn(&mut Traps) -> &mut Fuse),
    SourceError,
    SourcePanic,
    Sink(Fault),
}

/// Runs [`sums`], which fails as often as the fuse says, after a checkpoint with the numbers up to 200.
#[track_caller]
fn run_failing(
    failing: &Failing,
    fuse: &Fuse,
    restart: Restart,
    parallelism: usize,
) -> (Result<Summary, Error>, Collected<(u64, u64)>) {
    let (mut traps, mut fail, mut panic) = (Traps::none(), Fuse::never(), Fuse::never());
    let out = Collected::new();
    match failing {
        Failing::Closure(choose) => *choose(&mut traps) = fuse.clone(),
        Failing::SourceError => fail = fuse.clone(),
        Failing::SourcePanic => panic = fuse.clone(),
        Failing::Sink(_) => {}
    }
    let gate = Gate::closed();
    let job = sums(input(&gate, &fail, &panic), traps, out.clone());
    let config = Config { restart, ..often(&job, parallelism) };
    let running = start(job, config);
    out.wait_for(|records| records.len() == 200);
    if let Failing::Sink(fault) = failing {
        out.clone().failing(*fault, fuse);
    }
    gate.open();
    (running.wait(), out)
}

fn retries(attempts: u32) -> Restart {
    Restart::FixedDelay { attempts, delay: Duration::ZERO }
}

/// A failure that happens once is survived.
#[track_caller]
fn survives(failing: Failing) {
    for parallelism in PARALLELISMS {
        let fuse = Fuse::once();
        let (outcome, out) = run_failing(&failing, &fuse, retries(3), parallelism);
        let summary = outcome.expect("the second attempt succeeds");
        assert_eq!(fuse.blown(), 1, "{failing:?}");
        assert_eq!(summary.restarts, 1, "{failing:?}");
        assert_eq!(summary.ending, Ending::Finished);
        assert!(summary.resumed_from.is_some(), "there was a checkpoint before");
        assert_eq!(out.by_key(), expected(), "{failing:?} at parallelism {parallelism}");
    }
}

/// A failure that happens always ends the job after the last attempt, with an error that says all of this.
#[track_caller]
fn gives_up(failing: Failing, words: &[&str]) {
    for parallelism in PARALLELISMS {
        let fuse = Fuse::always();
        let (outcome, out) = run_failing(&failing, &fuse, retries(2), parallelism);
        let error = outcome.expect_err("no attempt succeeds").to_string();
        // Several subtasks of a sink may fail in one attempt.
        assert!(fuse.blown() >= 3, "{failing:?} {}", fuse.blown());
        for word in words {
            assert!(error.contains(word), "{word} in: {error}");
        }
        assert_eq!(out.len(), 200, "what was committed before stays, and nothing else is visible");
    }
}

#[test]
fn a_closure_returns_an_error() {
    survives(Failing::Closure(|traps| &mut traps.error));
    gives_up(
        Failing::Closure(|traps| &mut traps.error),
        &["operator `numbers.map` (subtask 0) at step ", " of script 0: the fuse blew"],
    );
}

#[test]
fn a_closure_panics() {
    survives(Failing::Closure(|traps| &mut traps.panic));
    gives_up(
        Failing::Closure(|traps| &mut traps.panic),
        &[
            "operator `numbers.inspect` (subtask 0) at step ",
            " of script 0: panicked: the fuse blew",
            "fuse.rs:",
        ],
    );
}

#[test]
fn the_closure_of_a_key_panics() {
    survives(Failing::Closure(|traps| &mut traps.key));
    gives_up(
        Failing::Closure(|traps| &mut traps.key),
        &["operator `sums.key_by` (subtask 0) at step ", " of script 0: panicked: the fuse blew"],
    );
}

#[test]
fn a_closure_after_an_aggregate_panics() {
    survives(Failing::Closure(|traps| &mut traps.after));
    gives_up(
        Failing::Closure(|traps| &mut traps.after),
        &["operator `sums.inspect` (subtask ", "panicked: the fuse blew"],
    );
}

#[test]
fn a_source_returns_an_error() {
    survives(Failing::SourceError);
    gives_up(
        Failing::SourceError,
        &["operator `numbers.source` (subtask ", "the source failed: the fuse blew"],
    );
}

#[test]
fn a_source_panics() {
    survives(Failing::SourcePanic);
    gives_up(
        Failing::SourcePanic,
        &["operator `numbers.source` (subtask ", "the source failed: its reader panicked: the fuse blew"],
    );
}

#[test]
fn a_sink_cannot_write() {
    survives(Failing::Sink(Fault::Write));
    gives_up(
        Failing::Sink(Fault::Write),
        &["operator `sums.sink` (subtask ", "the sink failed: the server refused: Write"],
    );
}

#[test]
fn the_writer_of_a_sink_panics() {
    survives(Failing::Sink(Fault::WritePanic));
    gives_up(
        Failing::Sink(Fault::WritePanic),
        &["operator `sums.sink` (subtask ", "panicked: the writer panicked"],
    );
}

#[test]
fn a_sink_cannot_pre_commit() {
    survives(Failing::Sink(Fault::PreCommit));
}

#[test]
fn a_commit_is_lost() {
    survives(Failing::Sink(Fault::CommitLost));
}

#[test]
fn the_committer_of_a_sink_panics() {
    survives(Failing::Sink(Fault::CommitPanic));
}

#[test]
fn a_commit_is_tried_again() {
    for fault in [Fault::CommitRetry, Fault::CommitUnheard] {
        for parallelism in PARALLELISMS {
            let fuse = Fuse::times(2);
            let (outcome, out) = run_failing(&Failing::Sink(fault), &fuse, Restart::Never, parallelism);
            let summary = outcome.expect("the third time succeeds");
            assert_eq!((summary.restarts, fuse.blown()), (0, 2));
            assert_eq!(out.by_key(), expected(), "{fault:?}");
        }
    }
}

#[test]
fn a_sink_cannot_start() {
    for fault in [Fault::Recover, Fault::Open] {
        for parallelism in PARALLELISMS {
            let fuse = Fuse::once();
            let out = Collected::new().failing(fault, &fuse);
            let gate = Gate::closed();
            gate.open();
            let job = sums(input(&gate, &Fuse::never(), &Fuse::never()), Traps::none(), out.clone());
            let config = config(&job, parallelism);
            let summary = run_with(job, config).expect("the second attempt succeeds");
            assert_eq!(summary.restarts, 1);
            assert_eq!(out.by_key(), expected());
        }
    }
}

#[test]
fn no_restart_means_none() {
    let fuse = Fuse::always();
    let failing = Failing::Closure(|traps| &mut traps.error);
    let (outcome, out) = run_failing(&failing, &fuse, Restart::Never, 3);
    assert!(matches!(outcome, Err(Error::User { .. })));
    assert_eq!((fuse.blown(), out.len()), (1, 200));
}

#[test]
fn exponential_restarts_are_limited_without_progress() {
    let (initial, max) = (Duration::from_millis(1), Duration::from_millis(4));
    let (multiplier, reset_after) = (2.0, Duration::ZERO);
    let restart = |attempts| Restart::Exponential { attempts, initial, max, multiplier, reset_after };
    let failing = Failing::Closure(|traps| &mut traps.panic);
    let fuse = Fuse::times(4);
    let (outcome, out) = run_failing(&failing, &fuse, restart(4), 3);
    assert_eq!(outcome.expect("the fifth attempt succeeds").restarts, 4);
    assert_eq!(out.by_key(), expected());
    let fuse = Fuse::always();
    let (outcome, _) = run_failing(&failing, &fuse, restart(4), 3);
    assert!(matches!(outcome, Err(Error::Panic { .. })));
    assert_eq!(fuse.blown(), 5);
}

#[test]
fn a_failure_rate_ends_a_job_that_fails_too_often_within_a_while() {
    let failing = Failing::Closure(|traps| &mut traps.panic);
    let restart = |max| Restart::FailureRate { max, per: Duration::from_secs(3600), delay: Duration::ZERO };
    let (outcome, out) = run_failing(&failing, &Fuse::times(3), restart(3), 3);
    assert_eq!(outcome.expect("three within an hour are borne").restarts, 3);
    assert_eq!(out.by_key(), expected());
    let fuse = Fuse::times(3);
    let (outcome, _) = run_failing(&failing, &fuse, restart(2), 3);
    assert!(matches!(outcome, Err(Error::Panic { .. })));
    assert_eq!(fuse.blown(), 3);
}

#[test]
fn an_attempt_that_fails_while_others_wait() {
    let trap = Fuse::once();
    let gate = Gate::closed();
    let (out, traps) = (Collected::new(), Traps { panic: trap.clone(), ..Traps::none() });
    let waiting = Script::new().records([1, 2, 3]).wait(&gate);
    let failing = Script::new().records([10]).records([BAD]);
    let job = sums(Scripted::new([waiting.clone(), failing, waiting]), traps, out.clone());
    let config = often(&job, 3);
    let running = start(job, config);
    out.wait_for(|records| records.iter().any(|(key, sum)| (*key, *sum) == (0, 260)));
    gate.open();
    assert_eq!(running.wait().expect("the second attempt succeeds").restarts, 1);
    assert_eq!(out.sorted(), [(0, 10), (0, 260), (1, 1), (1, 2), (2, 2), (2, 4), (3, 3), (3, 6)]);
}

#[test]
fn a_source_panics_while_nothing_else_happens() {
    let (fuse, out) = (Fuse::once(), Collected::new());
    let input = Scripted::new([Script::new().records([1, 2]).panic(&fuse).records([3])]);
    let job = sums(input, Traps::none(), out.clone());
    // Without a checkpoint nothing else wakes the worker.
    let config = config(&job, 2);
    assert_eq!(run_with(job, config).expect("the second attempt succeeds").restarts, 1);
    assert_eq!(out.sorted(), [(1, 1), (2, 2), (3, 3)]);
}

#[test]
fn an_error_of_a_source_says_where_it_was() {
    let input = Scripted::new([Script::new().records([1, 2]).fail(&Fuse::always())]);
    let job = sums(input, Traps::none(), Collected::new());
    let config = Config { restart: Restart::Never, ..config(&job, 2) };
    let error = run_with(job, config).expect_err("no attempt succeeds").to_string();
    assert_eq!(
        error,
        "operator `numbers.source` (subtask 0) at `script 0` after step 3: the source failed: the fuse blew"
    );
}

#[pipeline]
fn parsed(input: Scripted<String>, out: Collected<u64>) {
    let lines = source(input);
    let numbers = lines.map(|line| Ok(line.parse::<u64>()?)).on_error(skip);
    let small = numbers.filter(|n| Ok(*n < "100".parse()?)).on_error(skip);
    small.map(|n| n + 1).sink(out.transactional());
}

#[test]
fn records_that_fail_are_skipped_and_counted() {
    for parallelism in PARALLELISMS {
        let lines = |lines: [&str; 4]| Script::new().records(lines.map(str::to_owned));
        let input = Scripted::new([lines(["1", "x", "2", ""]), lines(["y", "30", "400", "5"])]);
        let out = Collected::new();
        let summary = common::run(parsed(input, out.clone()), parallelism);
        assert_eq!(out.sorted(), [2, 3, 6, 31]);
        assert_eq!(summary.skipped["numbers.map"], 3);
        assert_eq!(summary.skipped["small.filter"], 0);
    }
}

#[pipeline]
fn narrow_sum(records: u64, out: Collected<(u64, u8)>) {
    source(range(0..records)).key_by(|n| n % 2).sum(|_| 1u8).sink(out.transactional());
}

#[test]
fn a_sum_that_overflows_is_an_error() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        common::run(narrow_sum(510, out.clone()), parallelism);
        assert_eq!(out.len(), 510);
        let job = narrow_sum(512, Collected::new());
        let config = config(&job, parallelism);
        let error = run_with(job, config).expect_err("256 of each are too many").to_string();
        for word in ["operator `sum` (subtask ", ") at ", "the sum does not fit into `u8`"] {
            assert!(error.contains(word), "{word} in: {error}");
        }
    }
}

#[pipeline]
fn misdirected(out: Collected<u64>) {
    source(range(0..100))
        .partition_custom(|n, subtasks| n as usize + subtasks, |n| *n)
        .sink(out.transactional());
}

#[test]
fn a_partitioner_that_misses_is_an_error() {
    let job = misdirected(Collected::new());
    let config = config(&job, 3);
    let error = run_with(job, config).expect_err("there is no such subtask").to_string();
    for word in ["operator `partition_custom` (subtask ", "the partitioner chose subtask "] {
        assert!(error.contains(word), "{word} in: {error}");
    }
}

#[pipeline]
fn cannot_be_wired(fuse: Fuse, out: Collected<u64>) {
    fuse.panic(true);
    source(range(0..100)).sink(out.transactional());
}

#[test]
fn a_pipeline_that_panics_while_it_is_wired() {
    for parallelism in PARALLELISMS {
        let job = cannot_be_wired(Fuse::once(), Collected::new());
        let config = config(&job, parallelism);
        let error = run_with(job, config).expect_err("it cannot run").to_string();
        assert!(error.contains("the fuse blew"), "{error}");
    }
}

#[pipeline(guarantee = at_most_once)]
fn unrepeated(input: Scripted<u64>, fuse: Fuse, out: Collected<u64>) {
    source(input).inspect(|n| fuse.panic(*n == BAD)).sink(out.at_once());
}

#[test]
fn at_most_once_never_starts_again() {
    let fuse = Fuse::always();
    let out = Collected::new();
    let input = Scripted::new([Script::new().records(0..100).records(100..300)]);
    let job = unrepeated(input, fuse.clone(), out.clone());
    let config = config(&job, 1);
    assert!(matches!(run_with(job, config), Err(Error::Panic { .. })));
    assert_eq!(fuse.blown(), 1);
}
