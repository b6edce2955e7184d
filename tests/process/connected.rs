//! Functions of two streams: keyed by the same keys, without keys, and with one that is everywhere.

use std::collections::BTreeMap;

use flow::{
    BoxError, CoProcessFunction, Error, KeyedBroadcastProcessFunction, KeyedCoProcessFunction, State, Timer,
    ValueState,
    collection::range,
    pipeline,
    process::{BroadcastContext, CoContext, KeyedBroadcastContext, KeyedCoContext, NoSide},
    testing::{Harness, Input, Output},
    time::Timestamp,
    watermark::monotonous,
};

use crate::common::sorted;

/// Pairs what two streams say of a number. What has no partner a hundred milliseconds later goes aside.
struct Pairs;

#[derive(State)]
struct Waiting {
    left: ValueState<u64>,
    right: ValueState<String>,
}

impl KeyedCoProcessFunction for Pairs {
    type Key = u64;
    type Left = u64;
    type Right = (u64, String);
    type Out = (u64, String);
    type Side = u64;
    type State = Waiting;

    fn process_left(
        &mut self,
        state: &mut Waiting,
        n: u64,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match state.right.take() {
            Some(text) => cx.emit((n, text)),
            None => {
                state.left.set(n);
                cx.register_event_time_timer(cx.timestamp().ok_or("a time")?.plus_millis(100));
            }
        }
        Ok(())
    }

    fn process_right(
        &mut self,
        state: &mut Waiting,
        (_, text): (u64, String),
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match state.left.take() {
            Some(n) => cx.emit((n, text)),
            None => {
                state.right.set(text);
                cx.register_event_time_timer(cx.timestamp().ok_or("a time")?.plus_millis(100));
            }
        }
        Ok(())
    }

    fn on_timer(
        &mut self,
        state: &mut Waiting,
        _: Timer,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        if state.left.take().is_some() || state.right.take().is_some() {
            cx.emit_side(*cx.key());
        }
        Ok(())
    }
}

#[pipeline]
fn paired(out: Output<(u64, String)>, alone: Output<u64>) {
    let numbers = source(range(0..3_000)).watermarks(monotonous(), |n| Timestamp::from_millis(*n as i64));
    let texts = source(range(0..3_000))
        .filter(|n| n % 3 != 0)
        .map(|n| (n, n.to_string()))
        .watermarks(monotonous(), |(n, _)| Timestamp::from_millis(*n as i64));
    let (pairs, single) = numbers.key_by(|n| *n).connect(texts.key_by(|(n, _)| *n)).process(Pairs);
    pairs.sink(out);
    single.sink(alone);
}

#[test]
fn records_of_two_streams_share_the_state_and_timers_of_their_key() -> Result<(), Error> {
    let (all, none): (Vec<u64>, Vec<u64>) = (0..3_000).partition(|n| n % 3 != 0);
    for parallelism in [1, 2, 4] {
        let mut test = Harness::new();
        let (out, alone) = (test.output(), test.output());
        test.parallelism(parallelism).start(paired(out.clone(), alone.clone()))?;
        test.finish()?;
        // A source may be ahead of the other by more than a batch, but not by more than the watermark of both.
        assert_eq!(out.take_sorted(), sorted(all.iter().map(|n| (*n, n.to_string()))));
        assert_eq!(alone.take_sorted(), none);
    }
    Ok(())
}

/// Sums of both streams, which this subtask remembers.
struct Sums;

impl CoProcessFunction for Sums {
    type Left = u64;
    type Right = String;
    type Out = u64;
    type Side = NoSide;
    type State = Vec<u64>;

    fn process_left(
        &mut self,
        _: &mut Vec<u64>,
        n: u64,
        cx: &mut CoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        cx.emit(n);
        Ok(())
    }

    fn process_right(
        &mut self,
        seen: &mut Vec<u64>,
        text: String,
        cx: &mut CoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let n: u64 = text.parse()?;
        seen.push(n);
        cx.emit(1_000 + n);
        Ok(())
    }
}

#[pipeline]
fn both(out: Output<u64>) {
    let texts = source(range(0..100)).map(|n| if n == 7 { String::from("seven") } else { n.to_string() });
    source(range(0..100)).connect(texts).process(Sums).on_error(skip).sink(out);
}

#[test]
fn streams_of_different_types_become_one() -> Result<(), Error> {
    for parallelism in [1, 3] {
        let mut test = Harness::new();
        let out = test.output();
        test.parallelism(parallelism).start(both(out.clone()))?;
        let summary = test.finish()?;
        let expected = (0..100).chain((0..100).filter(|n| *n != 7).map(|n| 1_000 + n));
        assert_eq!(out.take_sorted(), expected.collect::<Vec<u64>>());
        assert_eq!(summary.skipped.values().sum::<u64>(), 1);
    }
    Ok(())
}

/// Numbers by the newest factor of their key's parity, and how many of a key there were.
struct Factors;

#[derive(State)]
struct Seen {
    times: ValueState<u64>,
}

impl KeyedBroadcastProcessFunction for Factors {
    type Key = u64;
    type In = u64;
    type Broadcast = (u64, u64);
    type BroadcastState = BTreeMap<u64, u64>;
    type Out = (u64, u64, u64);
    type Side = (u64, u64);
    type State = Seen;

    fn process(
        &mut self,
        state: &mut Seen,
        factors: &BTreeMap<u64, u64>,
        n: u64,
        cx: &mut KeyedBroadcastContext<'_, Self>,
    ) -> Result<(), BoxError> {
        *state.times.get_or_default() += 1;
        let factor = factors.get(&(n % 2)).copied().unwrap_or(0);
        cx.emit((n, n * factor, state.times.get().copied().unwrap_or(0)));
        Ok(())
    }

    fn process_broadcast(
        &mut self,
        factors: &mut BTreeMap<u64, u64>,
        (parity, factor): (u64, u64),
        cx: &mut BroadcastContext<'_, Self>,
    ) -> Result<(), BoxError> {
        factors.insert(parity, factor);
        cx.emit_side((parity, factor));
        Ok(())
    }
}

#[pipeline]
fn ruled(
    numbers: Input<u64>,
    rules: Input<(u64, u64)>,
    out: Output<(u64, u64, u64)>,
    known: Output<(u64, u64)>,
) {
    let keyed = source(numbers).key_by(|n| n % 5);
    let rules = source(rules);
    let (results, changes) = keyed.connect(rules.broadcast()).process(Factors);
    results.sink(out);
    changes.sink(known);
}

#[test]
fn what_is_broadcast_is_known_in_every_subtask_and_after_a_restore_at_another_parallelism()
-> Result<(), Error> {
    for (before, after) in [(1, 1), (1, 3), (3, 2), (4, 1)] {
        let mut test = Harness::new();
        let (numbers, rules) = (test.input(), test.input());
        let (out, known) = (test.output(), test.output());
        let job = || ruled(numbers.clone(), rules.clone(), out.clone(), known.clone());
        test.parallelism(before).start(job())?;
        rules.push_all([(0, 2), (1, 3), (1, 4)]);
        test.settle()?;
        assert_eq!(known.take().len(), 3 * before, "each subtask says so of each rule");
        numbers.push_all(0..100);
        let snapshot = test.snapshot()?;
        test.parallelism(after).restore(&snapshot, job())?;
        numbers.push_all(100..200);
        test.finish()?;
        let expected = (0..200u64).map(|n| (n, n * if n % 2 == 0 { 2 } else { 4 }, n / 5 + 1));
        assert_eq!(out.take_sorted(), expected.collect::<Vec<_>>(), "{before} to {after}");
        assert!(known.take().is_empty());
    }
    Ok(())
}
