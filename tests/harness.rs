//! The harness for tests of pipelines: what it promises to those who use it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use flow::{
    BoxError, Error, pipeline,
    testing::{Harness, Input, Output},
    time::Timestamp,
    watermark::{bounded, monotonous},
    window::{trigger, tumbling},
};

/// When, and which sensor.
type Reading = (i64, u64);

#[pipeline]
fn counted(readings: Input<Reading>, out: Output<(u64, i64, u64)>) {
    source(readings)
        .watermarks(bounded("2s"), |(time, _)| *time)
        .key_by(|(_, sensor)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count))
        .sink(out);
}

#[test]
fn what_was_pushed_has_gone_through_when_the_pipeline_has_settled() -> Result<(), Error> {
    for parallelism in [1, 3] {
        let mut test = Harness::new();
        let (readings, out) = (test.input(), test.output());
        test.parallelism(parallelism).start(counted(readings.clone(), out.clone()))?;
        test.settle()?;
        for second in 0..40 {
            readings.push((second * 1_000, 1));
            test.settle()?;
            // A window of five seconds is over when the watermark, two seconds behind, has passed its end.
            let (over, expected) = ((second - 2) / 5, (second - 7).rem_euclid(5) == 0);
            let expected: Vec<_> =
                if expected && second >= 7 { vec![(1, (over - 1) * 5_000, 5)] } else { vec![] };
            assert_eq!(out.take(), expected, "second {second}, parallelism {parallelism}");
        }
        let summary = test.finish()?;
        assert_eq!(out.take(), [(1, 35_000, 5)]);
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
    Ok(())
}

#[pipeline]
fn sums(numbers: Input<u64>, out: Output<u64>) {
    source(numbers).key_by(|_| ()).sum(|n| *n).map(|((), sum)| sum).sink(out);
}

#[test]
fn a_crash_goes_back_to_the_last_checkpoint_and_nothing_counts_twice() -> Result<(), Error> {
    let mut test = Harness::new();
    let (numbers, out) = (test.input(), test.output());
    let job = || sums(numbers.clone(), out.clone());
    test.start(job())?;
    numbers.push_all([1, 2]);
    test.settle()?;
    assert_eq!(out.committed(), [1, 3]);

    numbers.push(3);
    test.until(|| out.uncommitted() == 1)?;
    assert_eq!(out.committed(), [1, 3], "no checkpoint has been there");
    test.crash();
    assert_eq!(out.take(), [1, 3]);

    test.parallelism(2).start(job())?;
    test.settle()?;
    assert_eq!(out.take(), [6], "read again, from a sum of 3");
    assert_eq!(out.uncommitted(), 0);

    let stopped = test.stop()?;
    assert_eq!(stopped.ending, flow::Ending::Stopped);
    numbers.push(4);
    test.start(job())?;
    test.finish()?;
    assert_eq!(out.take(), [10]);
    Ok(())
}

#[test]
fn a_snapshot_is_restored_as_often_as_one_likes() -> Result<(), Error> {
    let mut test = Harness::new();
    let (numbers, out) = (test.input_of(3), test.output());
    let job = || sums(numbers.clone(), out.clone());
    test.start(job())?;
    (0..3).for_each(|split| numbers.push_to(split, [10]));
    let snapshot = test.snapshot()?;
    assert_eq!(out.take(), [10, 20, 30]);
    assert_eq!(snapshot.manifest().job, "sums");
    numbers.push_to(1, [1]);
    test.settle()?;
    assert_eq!(out.take(), [31]);
    for parallelism in [2, 4, 1] {
        test.parallelism(parallelism).restore(&snapshot, job())?;
        test.settle()?;
        assert_eq!(out.take(), [31], "with parallelism {parallelism}");
    }
    Ok(())
}

#[pipeline]
fn by_the_clock(clicks: Input<Reading>, out: Output<(u64, u64)>) {
    source(clicks)
        .watermarks(monotonous(), |(time, _)| *time)
        .key_by(|(_, user)| *user)
        .window(tumbling("30s"))
        .trigger(trigger::processing_time())
        .count()
        .sink(out);
}

#[test]
fn processing_time_passes_when_the_test_says_so() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        test.starting_at(Timestamp::EPOCH).parallelism(parallelism);
        let (clicks, out) = (test.input(), test.output());
        let job = || by_the_clock(clicks.clone(), out.clone());
        test.start(job())?;
        clicks.push_all([(1_000, 1), (2_000, 2), (3_000, 1)]);
        test.advance(Duration::from_millis(29_998))?;
        assert!(out.take().is_empty(), "due when the time has passed");
        test.advance(Duration::from_millis(1))?;
        assert_eq!(out.take_sorted(), [(1, 2), (2, 1)]);
        clicks.push((31_000, 1));
        test.advance(Duration::from_secs(20))?;
        assert!(out.take().is_empty());
        // Timers are part of a snapshot, and what became due while no job ran fires at once.
        let snapshot = test.snapshot()?;
        test.crash();
        test.clock().advance(Duration::from_secs(10));
        test.restore(&snapshot, job())?;
        test.settle()?;
        assert_eq!(out.take_sorted(), [(1, 1)]);
    }
    Ok(())
}

#[test]
fn an_input_that_falls_silent_becomes_idle_by_the_clock_of_the_test() -> Result<(), Error> {
    let mut test = Harness::new();
    let (readings, out) = (test.input_of(2), test.output());
    test.start(idle_counts(readings.clone(), out.clone()))?;
    readings.push_to(0, [(1_000, 1), (9_000, 1)]);
    test.settle()?;
    assert!(out.take().is_empty(), "the other split has said nothing");
    test.advance(Duration::from_secs(59))?;
    readings.push_to(0, [(9_000, 1)]);
    test.settle()?;
    assert!(out.take().is_empty());
    test.advance(Duration::from_secs(1))?;
    assert_eq!(out.take(), [(1, 1)], "the window of the first five seconds");
    Ok(())
}

#[pipeline]
fn idle_counts(clicks: Input<Reading>, out: Output<(u64, u64)>) {
    source(clicks)
        .watermarks(monotonous().with_idleness("1m"), |(time, _)| *time)
        .key_by(|(_, user)| *user)
        .window(tumbling("5s"))
        .count()
        .sink(out);
}

#[test]
fn a_watermark_can_be_pushed() -> Result<(), Error> {
    let mut test = Harness::new();
    let (readings, out) = (test.input_of(2), test.output());
    test.parallelism(2).start(idle_counts(readings.clone(), out.clone()))?;
    readings.push_to(0, [(1_000, 1)]);
    readings.push_to(1, [(2_000, 1)]);
    readings.watermark(Timestamp::from_millis(4_998));
    test.settle()?;
    assert!(out.take().is_empty());
    readings.watermark(Timestamp::from_millis(4_999));
    test.settle()?;
    assert_eq!(out.take(), [(1, 2)]);
    Ok(())
}

fn lucky(n: u64) -> Result<(), BoxError> {
    if n == 13 { Err("not that one".into()) } else { Ok(()) }
}

#[pipeline(restart = none)]
fn fussy(numbers: Input<u64>, out: Output<u64>) {
    source(numbers)
        .map(|n| {
            lucky(n)?;
            Ok(n)
        })
        .sink(out);
}

#[test]
fn a_job_that_fails_says_so_to_the_test() -> Result<(), Error> {
    let mut test = Harness::new();
    let (numbers, out) = (test.input(), test.output());
    test.start(fussy(numbers.clone(), out.clone()))?;
    numbers.push(13);
    let error = test.settle().expect_err("it fails");
    assert!(error.to_string().contains("record 0 of push 0 of split 0"), "{error}");
    assert!(error.to_string().contains("not that one"), "{error}");
    let error = test.settle().expect_err("it has failed");
    assert!(error.to_string().contains("no job runs"), "{error}");

    // Another job can follow.
    numbers.push(1);
    let two = test.start(fussy(numbers.clone(), out.clone()));
    assert!(two.is_ok());
    assert!(test.start(fussy(numbers.clone(), out.clone())).is_err(), "one at a time");
    Ok(())
}

#[test]
fn what_hangs_is_told() -> Result<(), Error> {
    let mut test = Harness::new();
    let (read, _never_read): (Input<u64>, Input<u64>) = (test.input(), test.input());
    let out = test.output();
    test.patience(Duration::from_millis(50)).start(sums(read, out))?;
    _never_read.push(1);
    let error = test.settle().expect_err("nobody reads it");
    assert!(error.to_string().contains("1 pushes that its sources have not read"), "{error}");
    Ok(())
}

#[pipeline(restart(fixed_delay(attempts = 3, delay = "0ms")))]
fn stumbling(numbers: Input<u64>, fall: Arc<AtomicBool>, out: Output<u64>) {
    source(numbers)
        .inspect(|n| {
            lucky(if *n == 3 && fall.swap(false, Ordering::SeqCst) { 13 } else { 0 })?;
            Ok(())
        })
        .sink(out);
}

#[test]
fn a_job_that_restarts_by_itself_reads_again() -> Result<(), Error> {
    let mut test = Harness::new();
    let (numbers, out) = (test.input(), test.output());
    let fall = Arc::new(AtomicBool::new(true));
    test.start(stumbling(numbers.clone(), fall, out.clone()))?;
    numbers.push(1);
    test.settle()?;
    (2..5).for_each(|n| numbers.push(n));
    test.settle()?;
    assert_eq!(out.take(), [1, 2, 3, 4]);
    let summary = test.finish()?;
    assert_eq!(summary.restarts, 1);
    Ok(())
}
