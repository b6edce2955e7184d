//! Checkpoints that cannot be written or take too long: they are counted, what they held goes with the next one,
//! nothing becomes visible before that one is complete, and too many of them send the job back.

mod common;

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use common::{
    Background, Collected, Fuse, Gate, Script, Scripted, Storage, Trouble, config, often, start, start_on,
};
use flow::{
    Config, Ending, Error, Restart, Summary,
    checkpoint::{CheckpointError, Compression},
    collection::range,
    file, pipeline,
    worker::Retention,
};

const PARALLELISMS: [usize; 2] = [1, 2];
/// The kinds of files that a checkpoint has.
const FILES: [&str; 3] = ["-state", "-txn", "manifest"];

#[pipeline]
fn sums(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    source(input).key_by(|n| n % 10).sum(|n| *n).sink(out.transactional());
}

/// The numbers to 400 in two splits, slowly, so that there are records in many checkpoints; a gate stands before the
/// last of them.
fn input(gate: &Gate) -> Scripted<u64> {
    let split = |first: u64| {
        let slow = (0..30).fold(Script::new(), |script, n| {
            let numbers = (n * 10..n * 10 + 10).filter(move |n| n % 2 == first);
            script.records(numbers).pause(Duration::from_millis(5))
        });
        slow.wait(gate).records((300..400).filter(move |n| n % 2 == first))
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

/// A sink that sees to it that nothing is committed before there is a manifest that carries it.
fn careful(storage: &Storage) -> Collected<(u64, u64)> {
    let storage = storage.clone();
    Collected::new().on_commit(move |checkpoint| {
        assert!(storage.newest() >= checkpoint, "a commit of {checkpoint} before its manifest");
    })
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "never: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Runs [`sums`] until the trouble is over and then to its end.
fn run(
    storage: &Storage,
    fuse: &Fuse,
    blows: i64,
    change: impl Fn(&mut Config),
    parallelism: usize,
) -> Outcome {
    let out = careful(storage);
    let gate = Gate::closed();
    let job = sums(input(&gate), out.clone());
    let mut config = often(&job, parallelism);
    config.tolerable_failures = 1000;
    change(&mut config);
    let running = start_on(job, config, storage.store());
    eventually("the trouble comes", || fuse.blown() == blows);
    out.wait_for(|records| records.len() == 300);
    gate.open();
    Outcome { summary: running.wait(), out }
}

struct Outcome {
    summary: Result<Summary, Error>,
    out: Collected<(u64, u64)>,
}

impl Outcome {
    #[track_caller]
    fn exact(self) -> Summary {
        let summary = self.summary.expect("the job ends well");
        assert_eq!(summary.ending, Ending::Finished);
        assert_eq!(self.out.by_key(), expected());
        summary
    }
}

#[test]
fn a_file_that_cannot_be_written_fails_its_checkpoint_alone() {
    for (file, parallelism) in FILES.into_iter().flat_map(|file| PARALLELISMS.map(|p| (file, p))) {
        let fuse = Fuse::times(3);
        let storage = Storage::new().with(file, Trouble::Refused, &fuse);
        let summary = run(&storage, &fuse, 3, |_| {}, parallelism).exact();
        assert_eq!(summary.restarts, 0, "{file}");
        // Several files of one checkpoint may be refused; handles are written into the folder of their own.
        let failed = summary.checkpoints.failed;
        assert!((1..=3).contains(&failed), "{file}: {failed}");
        assert!(summary.checkpoints.completed >= 1);
        if file != "-txn" {
            assert_eq!(storage.troubled().len() as u64, failed, "each is counted once");
            assert!(storage.troubled().is_disjoint(&storage.manifests()), "a failed one gets no manifest");
        }
    }
}

#[test]
fn a_file_that_hangs_fails_its_checkpoint_by_the_timeout() {
    for (file, parallelism) in ["-state", "-txn"].into_iter().flat_map(|file| PARALLELISMS.map(|p| (file, p)))
    {
        let fuse = Fuse::times(2);
        let storage = Storage::new().with(file, Trouble::Hangs, &fuse);
        let timeout = |config: &mut Config| config.checkpoint_timeout = Duration::from_millis(100);
        let summary = run(&storage, &fuse, 2, timeout, parallelism).exact();
        assert_eq!(summary.restarts, 0, "{file}");
        assert!((1..=2).contains(&summary.checkpoints.failed), "{file}: {}", summary.checkpoints.failed);
    }
}

#[test]
fn a_checkpoint_that_has_failed_gets_no_manifest_when_its_parts_arrive_late() {
    for parallelism in PARALLELISMS {
        let (fuse, late) = (Fuse::once(), Gate::closed());
        let storage = Storage::new().with("-state", Trouble::Late(late.clone()), &fuse);
        let (out, gate) = (careful(&storage), Gate::closed());
        let job = sums(input(&gate), out.clone());
        let mut config = often(&job, parallelism);
        config.tolerable_failures = 1;
        config.checkpoint_timeout = Duration::from_millis(200);
        let running = start_on(job, config, storage.store());
        // All but what the gate holds back, which took later checkpoints.
        out.wait_for(|records| records.len() == 300);
        let newest = storage.newest();
        late.open();
        eventually("checkpoints go on", || storage.newest() > newest + 1);
        gate.open();
        let summary = Outcome { summary: running.wait(), out }.exact();
        assert_eq!((summary.restarts, summary.checkpoints.failed), (0, 1));
        assert!(storage.troubled().is_disjoint(&storage.manifests()));
    }
}

#[test]
fn a_manifest_that_was_written_though_an_error_was_heard_does_no_harm() {
    for parallelism in PARALLELISMS {
        for (tolerable, restarts) in [(1000, 0), (0, 1)] {
            let fuse = Fuse::once();
            let storage = Storage::new().with("manifest", Trouble::Unheard, &fuse);
            let change = |config: &mut Config| config.tolerable_failures = tolerable;
            let summary = run(&storage, &fuse, 1, change, parallelism).exact();
            assert_eq!((summary.restarts, summary.checkpoints.failed), (restarts, 1));
        }
    }
}

#[test]
fn one_failure_is_one_too_many_unless_something_else_is_said() {
    for (file, parallelism) in FILES.into_iter().flat_map(|file| PARALLELISMS.map(|p| (file, p))) {
        let fuse = Fuse::once();
        let storage = Storage::new().with(file, Trouble::Refused, &fuse);
        let change = |config: &mut Config| config.tolerable_failures = 0;
        let summary = run(&storage, &fuse, 1, change, parallelism).exact();
        assert_eq!((summary.restarts, summary.checkpoints.failed), (1, 1), "{file}");
    }
}

#[test]
fn beyond_the_tolerable_number_the_job_goes_back() {
    for parallelism in PARALLELISMS {
        // One subtask of two has no state to write when keys of the other come first, so the manifest it is.
        let fuse = Fuse::times(5);
        let storage = Storage::new().with("manifest", Trouble::Refused, &fuse);
        let change = |config: &mut Config| config.tolerable_failures = 1;
        let summary = run(&storage, &fuse, 5, change, parallelism).exact();
        assert_eq!((summary.restarts, summary.checkpoints.failed), (2, 5));
    }
}

#[test]
fn a_job_that_may_not_restart_says_what_failed() {
    let fuse = Fuse::always();
    let storage = Storage::new().with("manifest", Trouble::Refused, &fuse);
    let (out, gate) = (careful(&storage), Gate::closed());
    let job = sums(input(&gate), out.clone());
    let config = Config { tolerable_failures: 2, restart: Restart::Never, ..often(&job, 2) };
    let error = start_on(job, config, storage.store()).wait().expect_err("it gives up");
    assert!(matches!(error, Error::Checkpoint(CheckpointError::Failed { failures: 3, tolerable: 2, .. })));
    let error = error.to_string();
    for words in ["number 3 in a row", "no space left", "--checkpoint-tolerable-failures"] {
        assert!(error.contains(words), "{words} in: {error}");
    }
    assert_eq!(out.len(), 0, "nothing is visible without a checkpoint");
}

/// As [`run`], without any checkpoint but the last.
fn run_last(storage: &Storage, restart: Restart, parallelism: usize) -> Outcome {
    let (out, gate) = (careful(storage), Gate::closed());
    gate.open();
    let job = sums(input(&gate), out.clone());
    let config = Config { restart, tolerable_failures: 1000, ..config(&job, parallelism) };
    Outcome { summary: start_on(job, config, storage.store()).wait(), out }
}

#[test]
fn the_last_checkpoint_is_tried_again() {
    for (file, parallelism) in FILES.into_iter().flat_map(|file| PARALLELISMS.map(|p| (file, p))) {
        let fuse = Fuse::times(2);
        let storage = Storage::new().with(file, Trouble::Refused, &fuse);
        let summary = run_last(&storage, Restart::Never, parallelism).exact();
        assert_eq!((summary.checkpoints.failed, summary.checkpoints.completed), (0, 1), "{file}");
        assert_eq!(fuse.blown(), 2);
    }
}

#[test]
fn a_job_whose_last_checkpoint_fails_has_not_ended() {
    for parallelism in PARALLELISMS {
        let fuse = Fuse::times(6);
        let storage = Storage::new().with("manifest", Trouble::Refused, &fuse);
        let restart = Restart::FixedDelay { attempts: 3, delay: Duration::ZERO };
        let summary = run_last(&storage, restart, parallelism).exact();
        assert_eq!((summary.restarts, summary.checkpoints.failed), (1, 1));

        let storage = Storage::new().with("manifest", Trouble::Refused, &Fuse::always());
        let outcome = run_last(&storage, Restart::Never, parallelism);
        let error = outcome.summary.expect_err("it must not end well").to_string();
        assert!(error.contains("the last of this run, failed"), "{error}");
        assert_eq!(outcome.out.len(), 0);
    }
}

#[test]
fn a_stop_during_a_checkpoint_that_hangs_ends_with_a_good_one() {
    for parallelism in PARALLELISMS {
        let fuse = Fuse::once();
        let storage = Storage::new().with("-state", Trouble::Hangs, &fuse);
        let (out, gate) = (careful(&storage), Gate::closed());
        let job = sums(input(&gate), out.clone());
        let mut config = often(&job, parallelism);
        (config.tolerable_failures, config.checkpoint_timeout) = (1, Duration::from_millis(100));
        let running = start_on(job.clone(), config.clone(), storage.store());
        eventually("a checkpoint hangs", || fuse.blown() == 1);
        let stopped = running.stop();
        assert_eq!((stopped.ending, stopped.restarts, stopped.checkpoints.failed), (Ending::Stopped, 0, 1));
        let seen = out.len();
        gate.open();
        let running = start_on(job, config, storage.store());
        let summary = Outcome { summary: running.wait(), out }.exact();
        assert_eq!(summary.resumed_from, Some(stopped.checkpoint));
        assert!(seen <= 300);
    }
}

#[test]
fn checkpoints_may_overlap() {
    for parallelism in PARALLELISMS {
        let slow = Fuse::always();
        let storage = Storage::new().with("-state", Trouble::Slow(Duration::from_millis(60)), &slow);
        let (out, gate) = (careful(&storage), Gate::closed());
        let job = sums(input(&gate), out.clone());
        let config = Config { checkpoint_max_concurrent: 3, ..often(&job, parallelism) };
        let running = start_on(job, config, storage.store());
        out.wait_for(|records| records.len() == 300);
        gate.open();
        let summary = Outcome { summary: running.wait(), out }.exact();
        assert_eq!((summary.restarts, summary.checkpoints.failed), (0, 0));
        // While the last of them are being deleted, the next may begin.
        assert!((2..=3).contains(&storage.most_at_once()), "{}", storage.most_at_once());
    }
}

#[test]
fn one_checkpoint_at_a_time_is_one() {
    let slow = Fuse::always();
    let storage = Storage::new().with("-state", Trouble::Slow(Duration::from_millis(30)), &slow);
    run(&storage, &Fuse::never(), 0, |_| {}, 2).exact();
    assert_eq!(storage.most_at_once(), 1);
}

#[test]
fn overlapping_checkpoints_fail_one_by_one() {
    for parallelism in PARALLELISMS {
        let (slow, refused, hang) = (Fuse::always(), Fuse::times(3), Fuse::times(2));
        let storage = Storage::new()
            .with("-state", Trouble::Refused, &refused)
            .with("-txn", Trouble::Hangs, &hang)
            .with("-state", Trouble::Slow(Duration::from_millis(40)), &slow);
        let change = |config: &mut Config| {
            config.checkpoint_max_concurrent = 3;
            config.checkpoint_timeout = Duration::from_millis(200);
        };
        let summary = run(&storage, &refused, 3, change, parallelism).exact();
        assert_eq!(summary.restarts, 0);
        assert!(summary.checkpoints.failed >= 2);
    }
}

#[pipeline(
    guarantee = at_least_once,
    checkpoint(interval = "20ms", timeout = "1s", max_concurrent = 2, tolerable_failures = 9, compression = zstd),
    restart(fixed_delay(attempts = 2, delay = "0s"))
)]
fn unaligned(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    source(input).key_by(|n| n % 10).sum(|n| *n).sink(out.transactional());
}

#[test]
fn what_the_pipeline_says_holds_and_needs_no_alignment() {
    for parallelism in PARALLELISMS {
        let fuse = Fuse::times(3);
        let storage = Storage::new().with("-state", Trouble::Refused, &fuse);
        let (out, gate) = (careful(&storage), Gate::closed());
        let job = unaligned(input(&gate), out.clone());
        let config = Config::with_parallelism(job.plan(), parallelism);
        assert_eq!((config.checkpoint_max_concurrent, config.tolerable_failures), (2, 9));
        assert_eq!(config.restart, Restart::FixedDelay { attempts: 2, delay: Duration::ZERO });
        let running = start_on(job, config, storage.store());
        out.wait_for(|records| records.len() == 300);
        gate.open();
        // Exact, since it never goes back.
        let summary = Outcome { summary: running.wait(), out }.exact();
        assert_eq!(summary.restarts, 0);
        assert!(summary.checkpoints.failed >= 1);
    }
}

#[pipeline(checkpoint = "1m", restart = none)]
fn never() {
    source(range(0..9)).sink(file::to_lines("out"));
}

#[pipeline(
    checkpoint(
        interval = "1m", timeout = "5m", min_pause = "1s", max_concurrent = 1, tolerable_failures = 2, retain = 5,
        compression = none, on_cancel = delete, on_success = retain,
    ),
    restart(exponential(initial = "50ms", max = "1h", multiplier = 1.5, reset_after = "10m", attempts = 7)),
)]
fn patient() {
    source(range(0..9)).sink(file::to_lines("out"));
}

#[pipeline(restart(failure_rate(max = 3, per = "5m")))]
fn limited() {
    source(range(0..9)).sink(file::to_lines("out"));
}

#[pipeline(restart = exponential)]
fn usual() {
    source(range(0..9)).sink(file::to_lines("out"));
}

#[test]
fn what_the_pipeline_says_is_in_its_plan() {
    let s = Duration::from_secs;
    let (never, patient, limited, usual) =
        (never().plan(), patient().plan(), limited().plan(), usual().plan());
    assert_eq!((never.checkpoint.interval, never.restart), (Some(s(60)), Some(Restart::Never)));
    assert_eq!(never.checkpoint.timeout, None);
    let said = patient.checkpoint;
    assert_eq!((said.interval, said.timeout, said.min_pause), (Some(s(60)), Some(s(300)), Some(s(1))));
    assert_eq!((said.max_concurrent, said.tolerable_failures, said.retain), (Some(1), Some(2), Some(5)));
    assert_eq!(said.compression, Some(Compression::None));
    assert_eq!((said.on_cancel, said.on_success), (Some(Retention::Delete), Some(Retention::Retain)));
    let exponential = Restart::Exponential {
        attempts: 7,
        initial: Duration::from_millis(50),
        max: s(3600),
        multiplier: 1.5,
        reset_after: s(600),
    };
    assert_eq!(patient.restart, Some(exponential));
    assert_eq!(limited.restart, Some(Restart::FailureRate { max: 3, per: s(300), delay: Restart::DELAY }));
    assert_eq!(usual.restart, Some(Restart::default()));
}

fn names(dir: &std::path::Path) -> usize {
    let files = std::fs::read_dir(dir).expect("the directory is there");
    files.filter(|file| file.as_ref().is_ok_and(|file| file.file_name() != "lock")).count()
}

#[test]
fn checkpoints_are_deleted_where_that_is_asked_for() {
    let (retain, delete) = (Retention::Retain, Retention::Delete);
    for (on_cancel, on_success, stopped) in
        [(delete, retain, true), (retain, delete, true), (delete, retain, false), (retain, delete, false)]
    {
        let dir = tempfile::tempdir().expect("a directory");
        let (out, gate) = (Collected::new(), Gate::closed());
        let job = sums(input(&gate), out.clone());
        let checkpoint_dir = Some(dir.path().to_str().expect("a plain path").to_owned());
        let config = Config { on_cancel, on_success, checkpoint_dir, ..often(&job, 2) };
        let running: Background = start(job, config);
        out.wait_for(|records| records.len() == 300);
        if stopped {
            running.stop();
        } else {
            gate.open();
            running.wait().expect("the job ends well");
        }
        let what = if stopped { on_cancel } else { on_success };
        assert_eq!(names(dir.path()) == 0, what == delete);
    }
}

#[test]
fn compressed_state_is_restored_without_being_told() {
    for compressions in [[Compression::Zstd, Compression::None], [Compression::None, Compression::Zstd]] {
        let storage = Storage::new();
        let (out, gate) = (careful(&storage), Gate::closed());
        let job = sums(input(&gate), out.clone());
        let config = |compression, parallelism| Config { compression, ..often(&job, parallelism) };
        let running = start_on(job.clone(), config(compressions[0], 1), storage.store());
        out.wait_for(|records| records.len() == 300);
        running.stop();
        gate.open();
        let running = start_on(job.clone(), config(compressions[1], 2), storage.store());
        assert!(Outcome { summary: running.wait(), out }.exact().resumed_from.is_some());
    }
}

#[test]
fn a_pause_between_checkpoints_is_kept() {
    let storage = Storage::new();
    let change = |config: &mut Config| config.checkpoint_min_pause = Duration::from_millis(200);
    let began = Instant::now();
    let summary = run(&storage, &Fuse::never(), 0, change, 2).exact();
    let at_most = began.elapsed().as_millis() / 200 + 2;
    assert!(u128::from(summary.checkpoints.completed) <= at_most);
}
