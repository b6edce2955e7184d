//! How jobs end: when all sources have, however differently they do.

mod common;

use common::{Collected, Gate, Script, Scripted, often, run, start};
use flow::{
    Ending,
    collection::{collection, range},
    pipeline,
    watermark::monotonous,
    window::tumbling,
};

#[pipeline]
fn two_sources(
    first: Scripted<u64>,
    second: Scripted<u64>,
    left: Collected<(u64, u64)>,
    right: Collected<u64>,
) {
    let first = source(first);
    let second = source(second);
    let both = first.union(second);
    both.key_by(|n| n % 2).count().sink(left.transactional());
    both.filter(|n| *n >= 100).sink(right.transactional());
}

#[test]
fn a_source_ends_early_and_another_goes_on() {
    for parallelism in [1, 3] {
        let (gate, left, right) = (Gate::closed(), Collected::new(), Collected::new());
        let early = Scripted::new([Script::new().records(0..10)]);
        let late = Scripted::new([Script::new().records(100..110).wait(&gate).records(110..120)]);
        let job = two_sources(early, late, left.clone(), right.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        // Checkpoints go on without the source that has ended.
        right.wait_for(|records| records.len() == 10);
        left.wait_for(|records| records.len() == 20);
        gate.open();
        assert_eq!(running.wait().expect("the job ends").ending, Ending::Finished);
        assert_eq!(left.sorted(), common::sorted((0..2).flat_map(|key| (1..=15).map(move |n| (key, n)))));
        assert_eq!(right.sorted(), (100..120).collect::<Vec<_>>());
    }
}

#[test]
fn a_source_never_ends_and_another_is_empty() {
    for parallelism in [1, 3] {
        let (left, right) = (Collected::new(), Collected::new());
        let endless = Scripted::new([Script::new().records(100..110).never()]);
        let job = two_sources(Scripted::new([]), endless, left.clone(), right.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        left.wait_for(|records| records.len() == 10);
        assert_eq!(running.stop().ending, Ending::Stopped);
        assert_eq!(right.sorted(), (100..110).collect::<Vec<_>>());
    }
}

#[test]
fn splits_that_are_found_later_are_read_and_remembered() {
    for parallelism in [1, 3] {
        let (gate, left, right) = (Gate::closed(), Collected::new(), Collected::new());
        let scripts = (0..5).map(|n| Script::new().records(100 + 10 * n..110 + 10 * n));
        // The two first end at once, and that is not the end of the source.
        let growing = Scripted::new(scripts).growing(2, &gate);
        let job = two_sources(growing, Scripted::new([]), left.clone(), right.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        right.wait_for(|records| records.len() == 20);
        gate.open();
        right.wait_for(|records| records.len() == 50);
        assert_eq!(running.stop().ending, Ending::Stopped);
        assert_eq!(right.sorted(), (100..150).collect::<Vec<_>>());
    }
}

#[pipeline]
fn counts(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    source(input).key_by(|n| n % 2).count().sink(out.transactional());
}

#[pipeline(mode = batch)]
fn final_counts(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    source(input).key_by(|n| n % 2).count().sink(out.transactional());
}

#[test]
fn an_input_without_records() {
    for parallelism in [1, 3] {
        let inputs =
            [Scripted::new([]), Scripted::new([Script::new()]), Scripted::new([Script::new().records([])])];
        for input in inputs {
            let out = Collected::new();
            assert_eq!(run(counts(input.clone(), out.clone()), parallelism).ending, Ending::Finished);
            assert_eq!(run(final_counts(input, out.clone()), parallelism).ending, Ending::Finished);
            assert_eq!(out.len(), 0);
        }
    }
}

#[test]
fn fewer_splits_than_subtasks() {
    let out = Collected::new();
    let input = Scripted::new([Script::new().records(0..10), Script::new().records(10..20)]);
    run(final_counts(input.clone(), out.clone()), 5);
    assert_eq!(out.sorted(), [(0, 10), (1, 10)]);
    let out = Collected::new();
    run(counts(input, out.clone()), 5);
    assert_eq!(out.len(), 20);
}

#[pipeline(mode = batch)]
fn two_results(sums: Collected<(u64, u64)>, most: Collected<(u64, u64)>) {
    let numbers = source(collection((0..1000u64).collect::<Vec<_>>()));
    let by_digit = numbers.key_by(|n| n % 10).sum(|n| *n);
    by_digit.sink(sums.transactional());
    let spread = by_digit.rebalance().map(|(key, sum)| (key % 2, sum));
    spread.key_by(|(parity, _)| *parity).max(|(_, sum)| *sum).sink(most.transactional());
}

#[test]
fn a_result_that_is_written_and_goes_on() {
    for parallelism in [1, 2, 4] {
        let (sums, most) = (Collected::new(), Collected::new());
        run(two_results(sums.clone(), most.clone()), parallelism);
        let sum = |key| (0..1000).filter(|n| n % 10 == key).sum::<u64>();
        assert_eq!(sums.sorted(), (0..10).map(|key| (key, sum(key))).collect::<Vec<_>>());
        assert_eq!(most.sorted(), [(0, sum(8)), (1, sum(9))]);
    }
}

#[pipeline(mode = batch)]
fn narrow_and_wide(out: Collected<(u64, u64)>) {
    let counts = source(collection((0..1000u64).collect::<Vec<_>>()))
        .parallelism(2)
        .key_by(|n| n % 100)
        .count()
        .parallelism(3);
    counts.key_by(|(_, n)| *n).count().parallelism(1).sink(out.transactional()).parallelism(4);
}

#[test]
fn workers_that_have_no_part_in_some_operators() {
    for parallelism in [1, 2, 5] {
        let out = Collected::new();
        run(narrow_and_wide(out.clone()), parallelism);
        assert_eq!(out.sorted(), [(10, 100)]);
    }
}

/// Numbers, and windows of the same numbers.
#[pipeline]
fn numbers_and_their_windows(out: Collected<(u64, i64)>) {
    let numbers = source(range(0..1_000)).watermarks(monotonous(), |n| *n);
    let counts = numbers
        .key_by(|n| n % 3)
        .window(tumbling("100ms"))
        .count()
        .with(|key, window, _| (key, window.start.as_millis()));
    numbers
        .filter(|n| n % 100 < 3)
        .key_by(|n| n % 3)
        .join(counts.key_by(|(key, _)| *key))
        .window(tumbling("100ms"))
        .with(|key, _, (_, start)| (key, *start))
        .sink(out.transactional());
}

#[test]
fn what_the_last_windows_give_still_meets_the_last_records() {
    for parallelism in [1, 3] {
        let out = Collected::new();
        run(numbers_and_their_windows(out.clone()), parallelism);
        let expected = (0..3).flat_map(|key| (0..10).map(move |window| (key, window * 100)));
        assert_eq!(out.sorted(), common::sorted(expected), "{parallelism}");
    }
}
