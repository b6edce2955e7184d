//! Event time from the source to the windows: what a watermark waits for, what it makes fire, and what outlives a
//! restart. What windows do with it is tested where they are.

mod common;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use common::{Collected, Script, Scripted, deal, halves, often, random, start};
use flow::{
    Definition, Error, Job, Stream, Summary, pipeline,
    testing::{Harness, Input, Output},
    time::Timestamp,
    watermark::{bounded, monotonous, punctuated},
    window::{aggregate, count, evict, session, sliding, trigger, tumbling},
};
use tokio::sync::watch;

/// A reading: when, by which sensor, how much.
type Reading = (i64, u64, u64);
/// The count of a window: of which sensor, from when, how many.
type Counted = (u64, i64, u64);

#[pipeline]
fn tumbled(input: Input<Reading>, out: Output<Counted>) {
    let readings = source(input).watermarks(bounded("2s"), |(time, _, _)| *time);
    let counts = readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out);
}

#[pipeline]
fn slid(input: Input<Reading>, out: Output<Counted>) {
    let counts = source(input)
        .watermarks(bounded("2s"), |(time, _, _)| Timestamp::from_millis(*time))
        .rebalance()
        .filter(|_| true)
        .key_by(|(_, sensor, _)| *sensor)
        .window(sliding("5s", "2s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out);
}

#[pipeline]
fn in_sessions(input: Input<Reading>, out: Output<Counted>) {
    let counts = source(input)
        .map(|(time, sensor, _)| {
            (sensor, SystemTime::try_from(Timestamp::from_millis(time)).expect("a time"))
        })
        .watermarks(bounded("2s"), |(_, time)| *time)
        .key_by(|(sensor, _)| *sensor)
        .window(session("300ms"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out);
}

/// Readings that are out of order by up to two seconds, of 7 sensors over about two minutes.
fn readings(seed: u64) -> Vec<Reading> {
    let mut random = random(seed);
    (0..2_000).map(|i| (i * 60 + random(2_000) as i64, random(7), random(100))).collect()
}

/// What comes out of readings in so many splits, sorted. In their middle the job is restored at the second parallelism,
/// if there is one.
fn outcome<T: Ord + Send + 'static, D: Definition + 'static>(
    readings: &[Reading],
    splits: usize,
    (parallelism, then): (usize, Option<usize>),
    job: impl Fn(Input<Reading>, Output<T>) -> Job<D>,
) -> Result<(Vec<T>, Summary), Error> {
    let mut test = Harness::new();
    let (input, out) = (test.input_of(splits), test.output());
    let (first, second) = halves(readings);
    test.parallelism(parallelism).start(job(input.clone(), out.clone()))?;
    deal(&input, splits, first);
    let mut records = Vec::new();
    if let Some(parallelism) = then {
        let middle = test.snapshot()?;
        records = out.take();
        assert!(!records.is_empty());
        test.parallelism(parallelism).restore(&middle, job(input.clone(), out.clone()))?;
    }
    deal(&input, splits, second);
    let summary = test.finish()?;
    records.extend(out.take());
    records.sort();
    Ok((records, summary))
}

/// How many readings of a sensor are in which window, told from all of them.
fn counted(readings: &[Reading], windows: impl Fn(i64) -> Vec<i64>) -> Vec<Counted> {
    let mut counts = BTreeMap::new();
    for (time, sensor, _) in readings {
        for start in windows(*time) {
            *counts.entry((*sensor, start)).or_insert(0) += 1;
        }
    }
    counts.into_iter().map(|((sensor, start), count)| (sensor, start, count)).collect()
}

fn in_fives(time: i64) -> Vec<i64> {
    vec![time.div_euclid(5_000) * 5_000]
}

fn every_two(time: i64) -> Vec<i64> {
    let last = time.div_euclid(2_000) * 2_000;
    (0..3).map(|back| last - 2_000 * back).filter(|start| time < start + 5_000).collect()
}

/// Sessions of a sensor: readings less than the gap apart, which touching windows are, too.
fn sessions(readings: &[Reading]) -> Vec<Counted> {
    let mut sorted = readings.to_vec();
    sorted.sort_unstable_by_key(|(time, sensor, _)| (*sensor, *time));
    let mut sessions: Vec<Counted> = Vec::new();
    let mut last = (u64::MAX, i64::MIN);
    for (time, sensor, _) in sorted {
        match sessions.last_mut() {
            Some(session) if last.0 == sensor && time <= last.1 + 300 => session.2 += 1,
            _ => sessions.push((sensor, time, 1)),
        }
        last = (sensor, time);
    }
    sessions
}

#[test]
fn windows_over_input_out_of_order_are_what_an_oracle_says() -> Result<(), Error> {
    let readings = readings(0x2545_f491_4f6c_dd1d);
    for (parallelism, splits) in [(1, 1), (1, 3), (2, 3), (4, 5), (4, 2)] {
        let at = (parallelism, None);
        let (counts, summary) = outcome(&readings, splits, at, tumbled)?;
        assert_eq!(counts, counted(&readings, in_fives), "tumbling, {parallelism} and {splits}");
        assert_eq!(summary.late.values().sum::<u64>(), 0);

        let (counts, _) = outcome(&readings, splits, at, slid)?;
        assert_eq!(counts, counted(&readings, every_two), "sliding, {parallelism} and {splits}");

        let (counts, _) = outcome(&readings, splits, at, in_sessions)?;
        assert_eq!(counts, sessions(&readings), "sessions, {parallelism} and {splits}");
    }
    Ok(())
}

#[pipeline]
fn roundabout(input: Input<Reading>, out: Output<Counted>) {
    let timed = source(input)
        .watermarks(bounded("2s"), |(time, _, _)| *time)
        .global()
        .map(|reading| reading)
        .disable_chaining()
        .rescale()
        .filter(|_| true)
        .parallelism(3);
    // An aggregate of all records, whose updates happened when the records did.
    let updates = timed.key_by(|(_, sensor, _)| *sensor).count();
    updates
        .partition_custom(|sensor, subtasks| sensor as usize % subtasks, |(sensor, _)| *sensor)
        .inspect(|_| ())
        .key_by(|(sensor, _)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count))
        .sink(out);
}

#[pipeline]
fn in_a_helper(readings: Stream<Reading>, bound: Duration) -> Stream<Counted> {
    let timed = readings.watermarks(bounded(bound), |(time, _, _)| *time);
    timed
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .process(|sensor, window, readings| (sensor, window.start.as_millis(), readings.len() as u64))
}

#[pipeline(guarantee = at_least_once)]
fn with_a_helper(input: Input<Reading>, out: Output<Counted>, again: Output<Counted>) {
    let readings = source(input);
    let counted = in_a_helper(readings, Duration::from_secs(4));
    counted.sink(out);
    // Another event time for the same records.
    readings
        .watermarks(bounded("3s"), |(time, _, _)| *time + 1_000_000)
        .key_by(|(_, sensor, _)| *sensor)
        .window(sliding("5s", "2s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis() - 1_000_000, count))
        .sink(again);
}

#[pipeline(mode = batch)]
fn windows_per_sensor(input: Input<Reading>, out: Output<(u64, u64)>) {
    let readings = source(input).watermarks(bounded("2s"), |(time, _, _)| *time);
    let counts = readings.key_by(|(_, sensor, _)| *sensor).window(tumbling("5s")).count();
    // Over all windows, at the end.
    counts.key_by(|(sensor, _)| *sensor).count().sink(out);
}

#[test]
fn event_time_takes_every_way_that_records_take() -> Result<(), Error> {
    let readings = readings(0x1234_5678_9abc_def1);
    for (parallelism, splits) in [(1, 2), (2, 3), (4, 1)] {
        let (counts, summary) = outcome(&readings, splits, (parallelism, None), roundabout)?;
        assert_eq!(counts, counted(&readings, in_fives), "{parallelism} and {splits}");
        assert_eq!(summary.late.values().sum::<u64>(), 0);

        // At the helper the splits come mixed, so one split's records are all there is to go by.
        let mut test = Harness::new();
        let (input, out, again) = (test.input(), test.output(), test.output());
        test.parallelism(parallelism).start(with_a_helper(input.clone(), out.clone(), again.clone()))?;
        deal(&input, 1, &readings);
        test.finish()?;
        assert_eq!(out.take_sorted(), counted(&readings, in_fives), "{parallelism}");
        assert_eq!(again.take_sorted(), counted(&readings, every_two), "{parallelism}");

        let (counts, _) = outcome(&readings, splits, (parallelism, None), windows_per_sensor)?;
        let windows = |sensor| counted(&readings, in_fives).iter().filter(|count| count.0 == sensor).count();
        assert_eq!(counts, (0..7).map(|sensor| (sensor, windows(sensor) as u64)).collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn windows_that_are_open_at_a_checkpoint_go_on_at_another_parallelism() -> Result<(), Error> {
    let readings = readings(0x9e37_79b9_7f4a_7c15);
    for (from, to) in [(1, 3), (3, 1), (2, 4), (2, 2)] {
        let (counts, summary) = outcome(&readings, 3, (from, Some(to)), tumbled)?;
        assert!(summary.resumed_from.is_some());
        assert_eq!(counts, counted(&readings, in_fives), "{from} to {to}");
        assert_eq!(summary.late.values().sum::<u64>(), 0, "{from} to {to}");
    }
    Ok(())
}

#[test]
fn what_was_late_before_a_restart_is_late_after_it() -> Result<(), Error> {
    for (from, to) in [(1, 1), (2, 2), (1, 3), (3, 1)] {
        let mut test = Harness::new();
        let (input, out) = (test.input(), test.output());
        test.parallelism(from).start(tumbled(input.clone(), out.clone()))?;
        input.push_all([(1_000, 1, 0), (20_000, 1, 0)]);
        let before = test.snapshot()?;
        assert_eq!(out.take(), [(1, 0, 1)]);

        test.parallelism(to).restore(&before, tumbled(input.clone(), out.clone()))?;
        input.push((2_000, 1, 0));
        let summary = test.finish()?;
        assert_eq!(summary.late.values().sum::<u64>(), 1);
        assert_eq!(out.take(), [(1, 20_000, 1)]);
    }
    Ok(())
}

#[test]
fn the_watermark_is_the_minimum_over_splits() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (input, out) = (test.input_of(2), test.output());
        test.parallelism(parallelism).start(tumbled(input.clone(), out.clone()))?;
        input.push_to(0, [(1_000, 1, 0), (60_000, 1, 0)]);
        input.push_to(1, [(2_000, 1, 0)]);
        test.settle()?;
        assert!(out.take().is_empty(), "one split is at 2 s");
        input.push_to(1, [(7_000, 2, 0), (3_000, 1, 0)]);
        let summary = test.finish()?;
        assert_eq!(out.take_sorted(), [(1, 0, 3), (1, 60_000, 1), (2, 5_000, 1)]);
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
    Ok(())
}

#[test]
fn a_split_without_records_holds_all_back_and_a_subtask_without_splits_does_not() -> Result<(), Error> {
    let mut test = Harness::new();
    let (input, out) = (test.input_of(2), test.output());
    // Four subtasks, of which two have a split.
    test.parallelism(4).start(tumbled(input.clone(), out.clone()))?;
    input.push_to(0, [(1_000, 1, 0), (60_000, 1, 0)]);
    test.settle()?;
    assert!(out.take().is_empty(), "nobody knows what is in the second split");
    input.push_to(1, [(61_000, 1, 0)]);
    test.settle()?;
    assert_eq!(out.take(), [(1, 0, 1)]);
    test.stop()?;
    assert!(out.take().is_empty(), "a job that is stopped is not at the end of its input");
    Ok(())
}

#[pipeline]
fn with_idleness(input: Input<Reading>, out: Output<Counted>) {
    let readings = source(input).watermarks(bounded("2s").with_idleness("50ms"), |(time, _, _)| *time);
    readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count))
        .sink(out);
}

#[test]
fn an_idle_split_is_left_out_until_it_wakes() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (input, out) = (test.input_of(2), test.output());
        test.parallelism(parallelism).start(with_idleness(input.clone(), out.clone()))?;
        (1..40).for_each(|second| input.push_to(0, [(second * 1_000, 1, 0)]));
        test.advance(Duration::from_millis(30))?;
        input.push_to(0, [(39_000, 1, 0)]);
        test.advance(Duration::from_millis(19))?;
        assert!(out.take().is_empty());
        test.advance(Duration::from_millis(1))?;
        let fives = (0..7).map(|window| (1, window * 5_000, if window == 0 { 4 } else { 5 }));
        assert_eq!(out.take_sorted(), fives.collect::<Vec<_>>());
        // What wakes behind the watermark does not take it back.
        input.push_to(1, [(50_000, 2, 0), (1_000, 2, 0)]);
        test.settle()?;
        let summary = test.finish()?;
        assert_eq!(summary.late.values().sum::<u64>(), 1);
        assert_eq!(out.take_sorted(), [(1, 35_000, 6), (2, 50_000, 1)]);
    }
    Ok(())
}

/// Held up by a sink, or by an operator that waits for an answer.
#[pipeline]
fn held_up(
    input: Input<Reading>,
    busy: Arc<watch::Sender<bool>>,
    seen: Output<Reading>,
    out: Output<Counted>,
) {
    let readings = source(input).watermarks(monotonous().with_idleness("50ms"), |(time, _, _)| *time);
    readings.sink(seen);
    readings
        .map_async(|reading| async move {
            busy.subscribe().wait_for(|busy| !busy).await?;
            Ok(reading)
        })
        .capacity(300)
        // The clock is advanced by an hour meanwhile.
        .timeout("2h")
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count))
        .sink(out);
}

#[test]
fn a_split_is_not_idle_while_nothing_can_be_read() -> Result<(), Error> {
    for by_sink in [true, false] {
        let mut test = Harness::new();
        let (input, seen, out) = (test.input_of(2), test.output(), test.output());
        let busy = Arc::new(watch::Sender::new(false));
        test.start(held_up(input.clone(), Arc::clone(&busy), seen.clone(), out.clone()))?;
        (0..2).for_each(|split| input.push_to(split, [(1_000, 1, 0)]));
        test.settle()?;
        let hold = |hold| match (by_sink, hold) {
            (true, true) => seen.hold(),
            (true, false) => seen.release(),
            (false, hold) => drop(busy.send_replace(hold)),
        };
        hold(true);
        // More than fits into what lies between the source and whatever does not go on.
        (6..26).for_each(|second| input.push_to(0, (0..300).map(|n| (second * 1_000 + n, 1, 0))));
        input.push_to(1, [(2_000, 1, 0), (26_000, 1, 0)]);
        test.until_held_up()?;
        test.clock().advance(Duration::from_secs(3600));
        hold(false);
        test.settle()?;
        // Had the second split been left out, its reading would be late.
        let fives = [(0, 3), (5_000, 1_200), (10_000, 1_500), (15_000, 1_500), (20_000, 1_500)];
        assert_eq!(out.take_sorted(), fives.map(|(start, count)| (1, start, count)));
        let summary = test.finish()?;
        assert_eq!(summary.late.values().sum::<u64>(), 0);
        assert_eq!(out.take_sorted(), [(1, 25_000, 301)]);
        assert_eq!(seen.take().len(), 6_004, "each reading goes there, too");
    }
    Ok(())
}

#[pipeline]
fn of_two_inputs(a: Input<Reading>, b: Input<Reading>, out: Output<(u64, u64)>) {
    let a = source(a).watermarks(monotonous(), |(time, _, _)| *time);
    let b =
        source(b).filter(|(_, _, n)| *n > 0).watermarks(monotonous(), |(time, _, _)| *time).parallelism(1);
    let all = a.union(b);
    all.key_by(|(_, sensor, _)| *sensor).window(tumbling("5s")).sum(|(_, _, n)| *n).sink(out);
}

#[test]
fn of_two_inputs_the_slower_one_counts() -> Result<(), Error> {
    for parallelism in [1, 3] {
        let mut test = Harness::new();
        let (fast, slow, out) = (test.input(), test.input(), test.output());
        test.parallelism(parallelism).start(of_two_inputs(fast.clone(), slow.clone(), out.clone()))?;
        fast.push_all([(1_000, 1, 1), (30_000, 1, 2)]);
        slow.push((4_000, 1, 4));
        test.settle()?;
        assert!(out.take().is_empty());
        slow.push_all([(4_500, 1, 8), (4_600, 1, 0)]);
        test.settle()?;
        assert!(out.take().is_empty());
        slow.push((40_000, 1, 16));
        test.settle()?;
        assert_eq!(out.take(), [(1, 13)], "{parallelism}");
        let summary = test.finish()?;
        assert_eq!(summary.late.values().sum::<u64>(), 0);
        assert_eq!(out.take_sorted(), [(1, 2), (1, 16)], "{parallelism}");
    }
    Ok(())
}

/// Words, that borrow from what they are cut from.
#[pipeline]
fn busiest(input: Input<(i64, String)>, out: Output<(String, i64, u64)>) {
    let words = source(input)
        .watermarks(monotonous(), |(time, _)| *time)
        .flat_map(|(_, line)| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let counts = words.key_by(|word| word.as_str()).window(tumbling("1s")).count();
    // Windows of the same size line up: the results of a second are in that second.
    counts
        .key_by(|_| ())
        .window(tumbling("1s"))
        .reduce(|a, b| if (b.1, &a.0) > (a.1, &b.0) { b } else { a })
        .with(|(), window, (word, count)| (word.to_owned(), window.start.as_millis(), count))
        .sink(out);
}

#[test]
fn windows_that_follow_windows_line_up() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (input, out) = (test.input(), test.output());
        test.parallelism(parallelism).start(busiest(input.clone(), out.clone()))?;
        let line = |time: i64, line: &str| (time, line.to_owned());
        let lines =
            [line(10, "to be or not to be or to"), line(999, "be"), line(1_500, "a a b"), line(9_000, "c")];
        input.push_all(lines);
        test.finish()?;
        let word = |word: &str, start, count| (word.to_owned(), start, count);
        assert_eq!(out.take_sorted(), [word("a", 1_000, 2), word("be", 0, 3), word("c", 9_000, 1)]);
    }
    Ok(())
}

/// A record of a type of its own.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Purchase {
    customer: String,
    at: u64,
    cents: u64,
}

#[pipeline]
fn spent(
    input: Input<Purchase>,
    most: Output<(String, u64)>,
    all: Output<(String, Vec<u64>)>,
    both: Output<(String, (u64, u64))>,
) {
    let purchases = source(input).watermarks(bounded("1s"), |purchase| purchase.at);
    let by_customer = purchases.key_by(|purchase| purchase.customer.as_str());
    by_customer
        .window(tumbling("1m"))
        .allowed_lateness("10s")
        .max(|purchase| purchase.cents)
        .map(|(customer, cents)| (customer.to_owned(), cents))
        .sink(most);
    by_customer
        .window(tumbling("1m"))
        .evictor(evict::count(2))
        .process(|customer, _, purchases| {
            (customer.to_owned(), purchases.map(|p| p.cents).collect::<Vec<_>>())
        })
        .sink(all);
    by_customer
        .window(tumbling("1m"))
        .trigger(trigger::purging(trigger::event_time()))
        .aggregate((aggregate::count(), aggregate::sum(|purchase: &Purchase| purchase.cents)))
        .map(|(customer, spent)| (customer.to_owned(), spent))
        .sink(both);
}

#[test]
fn records_of_a_type_of_ones_own_in_windows_of_all_kinds() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (input, most, all, both) = (test.input(), test.output(), test.output(), test.output());
        test.parallelism(parallelism).start(spent(input.clone(), most.clone(), all.clone(), both.clone()))?;
        let buy = |customer: &str, at, cents| Purchase { customer: customer.to_owned(), at, cents };
        let name = |name: &str| name.to_owned();
        let (ann, bob) = (|| name("ann"), || name("bob"));
        input.push_all([
            buy("ann", 1_000, 5),
            buy("bob", 500, 7),
            buy("ann", 2_000, 3),
            buy("ann", 1_500, 9),
        ]);
        input.push(buy("bob", 62_000, 1));
        test.settle()?;
        // The window of the first minute fires, and then again.
        assert_eq!(most.take_sorted(), [(ann(), 9), (bob(), 7)]);
        input.push(buy("ann", 3_000, 11));
        test.finish()?;
        assert_eq!(most.take_sorted(), [(ann(), 11), (bob(), 1)]);
        assert_eq!(all.take_sorted(), [(ann(), vec![9, 3]), (bob(), vec![1]), (bob(), vec![7])]);
        assert_eq!(both.take_sorted(), [(ann(), (3, 17)), (bob(), (1, 1)), (bob(), (1, 7))]);
    }
    Ok(())
}

#[pipeline]
fn by_number(input: Input<u64>, out: Output<(u64, u64)>) {
    source(input).key_by(|n| n % 2).window(count(3)).sum(|n| *n).sink(out);
}

#[test]
fn windows_by_number_need_no_event_time_and_a_rest_is_not_emitted() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (input, out) = (test.input(), test.output());
        test.parallelism(parallelism).start(by_number(input.clone(), out.clone()))?;
        input.push_all(0..14);
        test.finish()?;
        assert_eq!(out.take_sorted(), [(0, 6), (0, 24), (1, 9), (1, 27)]);
    }
    Ok(())
}

/// A mark in the stream says that all before it has come.
#[pipeline]
fn marked(input: Input<(i64, bool)>, out: Output<u64>) {
    source(input)
        .watermarks(punctuated(), |(time, complete)| (*time, complete.then_some(*time)))
        .filter(|(_, complete)| !complete)
        .key_by(|_| ())
        .window(tumbling("1s"))
        .count()
        .with(|(), _, count| count)
        .sink(out);
}

#[test]
fn a_punctuation_lets_windows_fire() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (input, out) = (test.input(), test.output());
        test.parallelism(parallelism).start(marked(input.clone(), out.clone()))?;
        input.push_all([(100, false), (5_000, false), (900, false), (999, true)]);
        test.settle()?;
        assert_eq!(out.take(), [2]);
        input.push_all([(998, false), (6_000, true)]);
        test.settle()?;
        assert_eq!(out.take(), [1]);
        assert_eq!(test.stop()?.late.values().sum::<u64>(), 1);
    }
    Ok(())
}

#[pipeline]
fn parsed(input: Input<String>, out: Output<(u64, u64)>) {
    source(input)
        .map(|line| line)
        .watermarks(bounded("1s").with_max_ahead("1h"), |line| Ok(line.trim().parse::<i64>()?))
        .on_error(skip)
        .key_by(|_| 0u64)
        .window(tumbling("1d"))
        .count()
        .sink(out);
}

#[pipeline]
fn must_parse(input: Input<String>, out: Output<(u64, u64)>) {
    let times = source(input).watermarks(monotonous(), |line| line.parse::<i64>());
    times.key_by(|_| 0u64).window(tumbling("1d")).count().sink(out);
}

#[test]
fn a_timestamp_that_is_missing_or_absurd_is_an_error_and_never_1970() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (input, out) = (test.input(), test.output());
        let ahead = test.clock().now().as_millis() + 86_400_000 * 365;
        let lines = |lines: &[&str]| input.push_all(lines.iter().map(|line| (*line).to_owned()));
        test.parallelism(parallelism).start(parsed(input.clone(), out.clone()))?;
        lines(&["5", "x", &ahead.to_string(), "7"]);
        let summary = test.finish()?;
        assert_eq!(summary.skipped.values().sum::<u64>(), 2);
        assert_eq!(out.take(), [(0, 2)]);

        let mut test = Harness::new();
        let (input, out) = (test.input(), test.output());
        test.parallelism(parallelism).start(must_parse(input.clone(), out))?;
        ["5", "x"].iter().for_each(|line| input.push((*line).to_owned()));
        let error = test.settle().expect_err("`x` is no time").to_string();
        assert!(error.contains("times.watermarks") && error.contains("invalid digit"), "{error}");
    }
    Ok(())
}

/// On a script, for the harness has no clock that moves by itself.
#[pipeline]
fn by_the_clock(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    source(input)
        .watermarks(monotonous(), |_| SystemTime::now())
        .key_by(|n| *n)
        .window(tumbling("100ms"))
        .trigger(trigger::processing_time())
        .count()
        .sink(out.transactional());
}

#[test]
fn the_clock_fires_windows_while_nothing_comes_but_not_at_the_end() {
    for parallelism in [1, 2] {
        let out = Collected::new();
        let job = by_the_clock(Scripted::new([Script::new().records([1]).never()]), out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        out.wait_for(|counts| counts == [(1, 1)]);
        running.stop();
    }
}

#[pipeline]
fn wrong(input: Input<u64>, idle: Duration, out: Output<(u64, u64)>) {
    let numbers = source(input).watermarks(monotonous().with_idleness(idle), |n| *n);
    numbers.key_by(|n| *n).window(tumbling(Duration::ZERO)).count().sink(out);
}

#[test]
fn what_makes_no_sense_is_refused_before_the_first_record() -> Result<(), Error> {
    for idle in [1, 100] {
        let mut test = Harness::new();
        let job = wrong(test.input(), Duration::from_millis(idle), test.output());
        test.start(job)?;
        let error = test.settle().expect_err("windows of no size").to_string();
        let (operator, why) =
            if idle == 1 { ("numbers.watermarks", "at least 10ms") } else { ("window", "size of a window") };
        assert!(error.contains(operator) && error.contains(why), "{error}");
    }
    Ok(())
}
