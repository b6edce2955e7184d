//! A job that is run again goes on where its last checkpoint was, at whatever parallelism; what does not fit is
//! refused.

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{Collected, Gate, Script, Scripted, config, often, run_with, start};
use flow::{
    Config, Definition, Ending, Job, Summary,
    checkpoint::{CheckpointId, RestoreRequest},
    pipeline,
};

#[pipeline]
fn sums(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    let sums = source(input).key_by(|n| n % 10).sum(|n| *n);
    sums.sink(out.transactional());
}

/// The numbers to 300 in three splits; a gate stands at each hundred.
fn input(gates: &[Gate; 2]) -> Scripted<u64> {
    let split = |first: u64| {
        let numbers = |from, to| (from..to).filter(move |n| n % 3 == first);
        Script::new()
            .records(numbers(0, 100))
            .wait(&gates[0])
            .records(numbers(100, 200))
            .wait(&gates[1])
            .records(numbers(200, 300))
    };
    Scripted::new([split(0), split(1), split(2)])
}

/// The final sums of the numbers to `end`.
fn totals(end: u64) -> BTreeMap<u64, u64> {
    (0..10).map(|key| (key, (0..end).filter(|n| n % 10 == key).sum())).collect()
}

/// The largest sum per key that is visible, which is the last.
fn seen(out: &Collected<(u64, u64)>) -> BTreeMap<u64, u64> {
    out.by_key().into_iter().map(|(key, sums)| (key, sums.into_iter().max().unwrap_or(0))).collect()
}

fn gates(open: [bool; 2]) -> [Gate; 2] {
    open.map(|open| {
        let gate = Gate::closed();
        if open {
            gate.open();
        }
        gate
    })
}

fn in_dir<D: Definition>(job: &Job<D>, parallelism: usize, dir: &Path) -> Config {
    Config { checkpoint_dir: Some(dir.to_str().expect("a plain path").to_owned()), ..often(job, parallelism) }
}

/// Reads the first hundred numbers, and stops.
#[track_caller]
fn first_run(dir: &Path, out: &Collected<(u64, u64)>, parallelism: usize) -> Summary {
    let job = sums(input(&gates([false, false])), out.clone());
    let config = in_dir(&job, parallelism, dir);
    let running = start(job, config);
    out.wait_for(|records| records.len() == 100);
    running.stop()
}

#[test]
fn a_stopped_job_goes_on_at_another_parallelism() {
    for parallelisms in [[1, 3, 2], [3, 2, 1], [2, 2, 4]] {
        let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
        let first = first_run(dir.path(), &out, parallelisms[0]);
        assert_eq!((first.ending, first.resumed_from), (Ending::Stopped, None));
        assert_eq!(seen(&out), totals(100));

        let job = sums(input(&gates([true, false])), out.clone());
        let config = in_dir(&job, parallelisms[1], dir.path());
        let running = start(job, config);
        out.wait_for(|records| records.len() == 200);
        let second = running.stop();
        assert_eq!(second.resumed_from, Some(first.checkpoint));
        assert_eq!(seen(&out), totals(200));

        let job = sums(input(&gates([true, true])), out.clone());
        let config = in_dir(&job, parallelisms[2], dir.path());
        let third = run_with(job, config).expect("the job ends");
        assert_eq!((third.ending, third.resumed_from), (Ending::Finished, Some(second.checkpoint)));
        assert_eq!(seen(&out), totals(300), "{parallelisms:?}");
        assert_eq!(out.len(), 300);
    }
}

#[test]
fn a_finished_job_has_nothing_left_to_do() {
    for parallelism in [1, 3] {
        let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
        let job = sums(input(&gates([true, true])), out.clone());
        let config = in_dir(&job, parallelism, dir.path());
        let first = run_with(job.clone(), config.clone()).expect("the job ends");
        let again = run_with(job, config).expect("the job ends again");
        assert_eq!((again.ending, again.resumed_from), (Ending::Finished, Some(first.checkpoint)));
        assert_eq!(out.len(), 300);
    }
}

#[test]
fn a_checkpoint_while_the_source_is_out_of_reach_keeps_its_positions() {
    for parallelism in [1, 3] {
        let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
        first_run(dir.path(), &out, 2);

        let away = input(&gates([true, true])).out_of_reach(&Gate::closed());
        let job = sums(away, out.clone());
        let config = in_dir(&job, parallelism, dir.path());
        assert_eq!(start(job, config).stop().ending, Ending::Stopped);
        assert_eq!(out.len(), 100);

        let job = sums(input(&gates([true, true])), out.clone());
        let config = in_dir(&job, parallelism, dir.path());
        run_with(job, config).expect("the job ends");
        assert_eq!(seen(&out), totals(300));
        assert_eq!(out.len(), 300);
    }
}

#[pipeline(mode = batch)]
fn total(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    source(input).key_by(|n| n % 10).sum(|n| *n).sink(out.transactional());
}

#[test]
fn a_batch_job_that_was_stopped_gives_its_result_at_the_end_and_once() {
    for parallelism in [1, 3] {
        let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
        let job = total(input(&gates([true, false])), out.clone());
        let config = in_dir(&job, parallelism, dir.path());
        assert_eq!(start(job, config).stop().ending, Ending::Stopped);
        assert_eq!(out.len(), 0);
        for _ in 0..2 {
            let job = total(input(&gates([true, true])), out.clone());
            let config = in_dir(&job, parallelism, dir.path());
            assert_eq!(run_with(job, config).expect("the job ends").ending, Ending::Finished);
            assert_eq!(out.sorted(), totals(300).into_iter().collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_job_that_is_stopped_before_it_runs() {
    let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
    let stop = flow::worker::Stop::default();
    stop.request();
    let job = sums(input(&gates([false, false])), out.clone());
    let config = in_dir(&job, 2, dir.path());
    let summary = common::within(move || flow::worker::run_until(&job, &config, &stop)).unwrap();
    assert_eq!(summary.ending, Ending::Stopped);
    first_run(dir.path(), &out, 1);
    assert_eq!(seen(&out), totals(100));
}

#[test]
fn fresh_begins_without_state() {
    let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
    let first = first_run(dir.path(), &out, 2);
    let job = sums(input(&gates([true, true])), out.clone());
    let config = Config { restore: RestoreRequest::Fresh, ..in_dir(&job, 2, dir.path()) };
    let summary = run_with(job, config).expect("the job ends");
    assert_eq!(summary.resumed_from, None);
    assert!(summary.checkpoint > first.checkpoint, "numbers go on");
    assert_eq!(out.len(), 100 + 300);
}

#[test]
fn from_begins_at_a_checkpoint_elsewhere() {
    let (elsewhere, dir, out) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Collected::new());
    let first = first_run(elsewhere.path(), &out, 3);
    let job = sums(input(&gates([true, true])), out.clone());
    let from = elsewhere.path().join(format!("chk-{}", first.checkpoint.0));
    let restore = RestoreRequest::From(from.to_str().unwrap().to_owned());
    let config = Config { restore, ..in_dir(&job, 2, dir.path()) };
    let summary = run_with(job, config).expect("the job ends");
    assert_eq!(summary.resumed_from, Some(first.checkpoint));
    assert_eq!(seen(&out), totals(300));
    assert_eq!(out.len(), 300);
}

/// Runs a job that cannot start, and returns why.
#[track_caller]
fn refused<D: Definition + 'static>(job: Job<D>, config: Config) -> String {
    run_with(job, config).expect_err("the job is refused").to_string()
}

#[pipeline(name = "other")]
fn other_job(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    let sums = source(input).key_by(|n| n % 10).sum(|n| *n);
    sums.sink(out.transactional());
}

#[pipeline(name = "sums")]
fn other_kind(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    let sums = source(input).key_by(|n| n % 10).max(|n| *n).uid("sums.sum");
    sums.sink(out.transactional());
}

#[pipeline(name = "sums")]
fn other_uid(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    let sums = source(input).key_by(|n| n % 10).sum(|n| *n).uid("totals");
    sums.sink(out.transactional());
}

#[test]
fn what_does_not_fit_the_checkpoint_is_refused() {
    let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
    first_run(dir.path(), &out, 2);
    let open = || input(&gates([true, true]));

    let job = other_job(open(), out.clone());
    let config = in_dir(&job, 2, dir.path());
    assert!(refused(job, config).contains("belongs to job `sums`, and this is job `other`"));

    let job = other_kind(open(), out.clone());
    let config = in_dir(&job, 2, dir.path());
    assert!(refused(job, config).contains("operator `sums.sum` was `sum` in checkpoint"));

    let job = sums(open(), out.clone());
    let config = Config { max_parallelism: 64, ..in_dir(&job, 2, dir.path()) };
    assert!(refused(job, config).contains("was written with max_parallelism = 128"));

    let job = other_uid(open(), out.clone());
    let config = in_dir(&job, 2, dir.path());
    let message = refused(job.clone(), config.clone());
    assert!(message.contains("`sums.sum` (sum; now `totals`?"), "{message}");
    assert_eq!(out.len(), 100);

    // By flag the state is dropped; the source goes on where it was.
    let config = Config { allow_dropped_state: true, ..config };
    run_with(job, config).expect("the job ends");
    assert_eq!(out.len(), 300);
    let without_state = |key| (100..300).filter(|n| n % 10 == key).sum::<u64>();
    assert_eq!(out.by_key()[&3].last(), Some(&without_state(3)));
}

/// Runs to two checkpoints, the first of which holds what came up to 100.
#[track_caller]
fn two_checkpoints(dir: &Path, out: &Collected<(u64, u64)>) -> [CheckpointId; 2] {
    let first = first_run(dir, out, 2).checkpoint;
    let job = sums(input(&gates([true, false])), out.clone());
    let config = Config { checkpoint_interval: config(&job, 2).checkpoint_interval, ..in_dir(&job, 2, dir) };
    let running = start(job, config);
    let second = running.stop().checkpoint;
    [first, second]
}

#[test]
fn a_damaged_checkpoint_is_refused_and_an_older_one_taken_by_flag() {
    let damage_manifest = |folder: &Path| {
        let path = folder.join("manifest");
        let mut manifest = fs::read(&path).unwrap();
        let middle = manifest.len() / 2;
        manifest[middle] ^= 1;
        fs::write(path, manifest).unwrap();
    };
    let lose_a_part = |folder: &Path| {
        let mut parts = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let part = parts.find(|path| path.to_str().unwrap().contains("-state."));
        fs::remove_file(part.expect("there is state")).unwrap();
    };
    let damages: [&dyn Fn(&Path); 2] = [&damage_manifest, &lose_a_part];
    for damage in damages {
        let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
        let [first, second] = two_checkpoints(dir.path(), &out);
        damage(&dir.path().join(format!("chk-{:010}", second.0)));

        let again = Collected::new();
        let job = sums(input(&gates([true, true])), again.clone());
        let config = in_dir(&job, 3, dir.path());
        let message = refused(job.clone(), config.clone());
        assert!(message.contains(&format!("the newest checkpoint, {second}, cannot be used")), "{message}");
        assert!(message.contains("--allow-older-checkpoint"), "{message}");

        let config = Config { allow_older_checkpoint: true, ..config };
        let summary = run_with(job, config).expect("the job ends");
        assert_eq!(summary.resumed_from, Some(first));
        assert!(summary.checkpoint > second);
        assert_eq!(seen(&again), totals(300));
        assert_eq!(again.len(), 200, "the older checkpoint held the first hundred");
    }
}

#[pipeline(guarantee = at_most_once)]
fn unrepeated(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    source(input).key_by(|n| n % 10).sum(|n| *n).sink(out.transactional());
}

#[test]
fn an_at_most_once_job_keeps_no_checkpoints() {
    let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
    let job = unrepeated(input(&gates([true, true])), out.clone());
    let config_with_dir = in_dir(&job, 1, dir.path());
    assert!(refused(job.clone(), config_with_dir).contains("an at-most-once job takes no checkpoints"));
    let config = config(&job, 2);
    run_with(job, config).expect("the job ends");
    assert_eq!(seen(&out), totals(300));
}

#[test]
fn an_at_most_once_job_makes_its_output_visible_while_it_runs() {
    let out = Collected::new();
    let job = unrepeated(input(&gates([false, false])), out.clone());
    let config = often(&job, 2);
    let running = start(job, config);
    out.wait_for(|records| records.len() == 100);
    assert_eq!(running.stop().ending, Ending::Stopped);
    assert_eq!(out.len(), 100);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let job = sums(input(&gates([true, true])), Collected::new());
    let config = config(&job, 1);
    assert!(refused(job.clone(), Config { parallelism: 0, ..config.clone() }).contains("at least 1"));
    assert!(
        refused(job.clone(), Config { parallelism: 200, ..config.clone() }).contains("max parallelism 128")
    );
    assert!(refused(job, Config { retain: 0, ..config }).contains("`--retain 1`"));
}
