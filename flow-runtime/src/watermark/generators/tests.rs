use super::{super::*, *};
use crate::watermark::strategy::Newest;

const NOW: Duration = Duration::ZERO;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn generators(strategy: impl WatermarkStrategy<Generator = Newest>, splits: &[&str]) -> Watermarks<Newest> {
    let generators = Watermarks::new(strategy, true, None, None, &Clock::default()).unwrap();
    generators.assigned(splits.iter().map(|split| (*split).to_owned()).collect(), NOW);
    generators
}

#[test]
fn watermarks_are_said_once_per_interval() {
    let strategy = super::super::bounded(s(1)).with_interval(Duration::from_millis(200));
    let generators = generators(strategy, &["a"]);
    let ms = Duration::from_millis;
    let at = |now| generators.mark(ms(now)).watermark.map(|watermark| watermark.timestamp().as_millis());
    assert_eq!((at(0), generators.ask_again(ms(0))), (None, None));
    read(&generators, "a", &[5_000], ms(10));
    assert_eq!((at(10), generators.ask_again(ms(10))), (Some(3_999), None), "the first one at once");
    read(&generators, "a", &[6_000], ms(20));
    assert_eq!((at(20), generators.ask_again(ms(20))), (Some(3_999), Some(ms(190))));
    read(&generators, "a", &[7_000], ms(200));
    assert_eq!((at(200), generators.ask_again(ms(200))), (Some(3_999), Some(ms(10))));
    assert_eq!((at(210), generators.ask_again(ms(210))), (Some(5_999), None), "the newest one");
    assert_eq!(generators.reached().map(|reached| reached.timestamp().as_millis()), Some(5_999));
    read(&generators, "a", &[9_000], ms(220));
    generators.end();
    assert_eq!(generators.mark(ms(220)).watermark, Some(Watermark::MAX), "the end does not wait");
}

/// A batch of one split.
fn read(generators: &Watermarks<Newest>, split: &str, times: &[i64], now: Duration) {
    let batch = SplitRuns { runs: None, advanced: vec![split.to_owned()] };
    generators.begin(Some(&batch), now);
    for time in times {
        generators.borrow_mut().stamp(*time).unwrap();
    }
}

fn watermark(generators: &Watermarks<Newest>) -> Option<Watermark> {
    generators.mark(NOW).watermark
}

fn at(ms: i64) -> Option<Watermark> {
    Some(Watermark::new(Timestamp::from_millis(ms)))
}

#[test]
fn the_minimum_over_splits_counts() {
    let generators = generators(bounded(s(1)), &["a", "b"]);
    read(&generators, "a", &[10_000, 12_000, 11_000], NOW);
    assert_eq!(watermark(&generators), None, "`b` may hold anything");
    read(&generators, "b", &[5_000], NOW);
    assert_eq!(watermark(&generators), at(3_999));
    generators.finished("b");
    assert_eq!(watermark(&generators), at(10_999));
    generators.finished("a");
    assert_eq!(generators.mark(NOW), Mark { watermark: at(10_999), idle: true });
    generators.end();
    assert_eq!(watermark(&generators), Some(Watermark::MAX));
    assert_eq!(generators.reached(), at(10_999));
}

#[test]
fn what_the_source_knows_of_a_split_counts_for_it_alone() {
    let generators = generators(monotonous(), &["a", "b"]);
    read(&generators, "a", &[50], NOW);
    generators.promised("b", Watermark::new(Timestamp::from_millis(30)));
    assert_eq!(generators.mark(NOW).watermark, Some(Watermark::new(Timestamp::from_millis(30))));
    generators.promised("b", Watermark::new(Timestamp::from_millis(20)));
    generators.promised("c", Watermark::MAX);
    generators.promised("b", Watermark::new(Timestamp::from_millis(90)));
    assert_eq!(generators.mark(NOW).watermark, Some(Watermark::new(Timestamp::from_millis(49))));
}

#[test]
fn a_subtask_without_splits_is_idle_once_it_knows() {
    let generators = Watermarks::new(monotonous(), true, None, None, &Clock::default()).unwrap();
    assert_eq!(generators.mark(NOW), Mark::default());
    generators.assigned(Vec::new(), NOW);
    assert_eq!(generators.mark(NOW), Mark { watermark: None, idle: true });
}

#[test]
fn runs_say_whose_record_it_is() {
    let generators = generators(monotonous(), &["a", "b"]);
    let splits = ["a", "b", "a"].map(str::to_owned).to_vec();
    let runs = Runs { splits, ..Runs::default() };
    let current = Arc::clone(&runs.current);
    generators.begin(Some(&SplitRuns { runs: Some(runs), advanced: Vec::new() }), NOW);
    for (run, time) in [(0, 10), (1, 20), (2, 15), (2, 40)] {
        current.store(run, Ordering::Relaxed);
        generators.borrow_mut().stamp(i64::from(time)).unwrap();
    }
    assert_eq!(watermark(&generators), at(19));
    generators.finished("b");
    assert_eq!(watermark(&generators), at(39));
}

#[test]
fn splits_that_come_mixed_share_a_generator() {
    let generators = generators(monotonous(), &["a", "b", "c"]);
    read(&generators, "c", &[1_000], NOW);
    let batch = SplitRuns { runs: None, advanced: vec!["a".to_owned(), "b".to_owned()] };
    generators.begin(Some(&batch), NOW);
    generators.borrow_mut().stamp(7i64).unwrap();
    assert_eq!(watermark(&generators), at(6));
    generators.finished("a");
    assert_eq!(watermark(&generators), at(6), "`b` is still there");
    generators.finished("b");
    assert_eq!(watermark(&generators), at(999));
}

#[test]
fn a_split_without_records_becomes_idle_and_wakes() {
    let generators = generators(bounded(s(0)).with_idleness(s(10)), &["a", "b"]);
    read(&generators, "a", &[100], s(1));
    assert_eq!(generators.mark(s(9)).watermark, None);
    assert_eq!(generators.ask_again(s(9)), Some(s(1)));
    assert_eq!(generators.mark(s(10)), Mark { watermark: at(99), idle: false });
    assert_eq!(generators.mark(s(11)), Mark { watermark: at(99), idle: true });
    assert_eq!(generators.ask_again(s(11)), None);
    read(&generators, "b", &[50], s(12));
    assert_eq!(generators.mark(s(12)), Mark { watermark: at(99), idle: false });
}

#[test]
fn a_timestamp_too_far_ahead_is_an_error() {
    let generators =
        Watermarks::new(monotonous().with_max_ahead(s(3600)), false, None, None, &Clock::default()).unwrap();
    generators.begin(None, NOW);
    let error = generators.borrow_mut().stamp(i64::MAX - 1).unwrap_err().to_string();
    assert!(error.contains("ahead of this machine's clock"), "{error}");
    assert_eq!(watermark(&generators), None);
    generators.borrow_mut().stamp(1_000i64).unwrap();
    assert_eq!(watermark(&generators), at(999));
}

#[test]
fn what_a_strategy_is_told_wrongly_is_said() {
    let short = monotonous().with_idleness(Duration::from_millis(1));
    let (why, _) = Watermarks::new(short, true, None, None, &Clock::default()).expect_err("wrong");
    assert!(why.to_string().contains("10ms"), "{why}");
}

#[test]
fn a_restored_watermark_is_said_at_once() {
    let generators = Watermarks::new(monotonous(), true, None, at(70), &Clock::default()).unwrap();
    assert_eq!(watermark(&generators), at(70));
    generators.assigned(vec!["a".to_owned()], NOW);
    assert_eq!(watermark(&generators), at(70));
    read(&generators, "a", &[60], NOW);
    assert_eq!(watermark(&generators), at(70), "never back");
}

#[test]
fn nobody_waits_for_a_subtask_that_is_at_its_end() {
    let positions = Arc::new(Positions::of(2));
    let strategy = || monotonous().with_alignment(s(10)).with_idleness(s(60));
    let subtask = |subtask, split: &str| {
        let aligned = Some((subtask, Arc::clone(&positions)));
        let generators = Watermarks::new(strategy(), true, aligned, None, &Clock::default()).unwrap();
        generators.assigned(vec![split.to_owned()], NOW);
        generators
    };
    let (fast, slow) = (subtask(0, "a"), subtask(1, "b"));
    read(&slow, "b", &[1_000], NOW);
    slow.align(NOW);
    read(&fast, "a", &[30_000], NOW);
    assert!(fast.align(NOW).is_some_and(|waiting| waiting.all));
    slow.finished("b");
    slow.end();
    assert_eq!(fast.align(NOW), Some(Waiting::default()));
}
