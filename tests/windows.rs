//! Windows of all records, in processing time and at the time of ingestion, and what is computed of windows.

mod common;

use std::{collections::BTreeMap, time::Duration};

use common::{Collected, Gate, Script, Scripted, deal, halves, often, random, sorted, start};
use flow::{
    Error, pipeline,
    testing::{Harness, Input, Output},
    time::Timestamp,
    watermark::{bounded, ingestion, monotonous},
    window::{aggregate, count, session, sliding, trigger, tumbling},
};

/// A reading: when, by which sensor, how much.
type Reading = (i64, u64, u64);

/// Readings that are out of order by up to two seconds, of 7 sensors over a minute.
fn readings(seed: u64) -> Vec<Reading> {
    let mut random = random(seed);
    (0..1_000).map(|i| (i * 60 + random(2_000) as i64, random(7), random(100))).collect()
}

/// From when, how many, the sum, the largest and of which sensor.
type Summed = (i64, u64, u64, u64);

#[pipeline]
fn of_all(
    input: Input<Reading>,
    tumbled: Output<Summed>,
    slid: Output<(i64, u64)>,
    sessions: Output<Vec<u64>>,
    by_number: Output<u64>,
) {
    let readings = source(input).watermarks(bounded("2s"), |(time, _, _)| *time);
    readings
        .window_all(tumbling("5s"))
        .aggregate((
            aggregate::count(),
            aggregate::sum(|(_, _, n): &Reading| *n),
            aggregate::max_by(|(_, sensor, n): &Reading| (*n, *sensor)),
        ))
        .with(|window, (count, sum, most)| (window.start.as_millis(), count, sum, most.1))
        .sink(tumbled);
    readings
        .rebalance()
        .filter(|_| true)
        .window_all(sliding("5s", "2s"))
        .count()
        .with(|window, count| (window.start.as_millis(), count))
        .sink(slid);
    readings
        .filter(|(_, sensor, n)| *sensor == 1 && *n < 20)
        .global()
        .window_all(session("300ms"))
        .process(|_, readings| readings.map(|(_, _, n)| n).collect::<Vec<_>>())
        .sink(sessions);
    // Which hundred records come together is not determined, and how many are.
    readings.window_all(count(100)).count().sink(by_number);
}

fn in_fives(readings: &[Reading]) -> Vec<Summed> {
    let mut windows: BTreeMap<i64, Vec<&Reading>> = BTreeMap::new();
    for reading in readings {
        windows.entry(reading.0.div_euclid(5_000) * 5_000).or_default().push(reading);
    }
    let summed = windows.into_iter().map(|(start, all)| {
        let most = all.iter().map(|(_, sensor, n)| (*n, *sensor)).max().expect("it is not empty");
        (start, all.len() as u64, all.iter().map(|(_, _, n)| n).sum(), most.1)
    });
    summed.collect()
}

fn every_two(readings: &[Reading]) -> Vec<(i64, u64)> {
    let mut windows = BTreeMap::new();
    for (time, _, _) in readings {
        let last = time.div_euclid(2_000) * 2_000;
        for start in [last, last - 2_000, last - 4_000].into_iter().filter(|start| *time < start + 5_000) {
            *windows.entry(start).or_insert(0) += 1;
        }
    }
    windows.into_iter().collect()
}

fn in_sessions(readings: &[Reading]) -> Vec<Vec<u64>> {
    let mut chosen: Vec<_> = readings.iter().filter(|(_, sensor, n)| *sensor == 1 && *n < 20).collect();
    chosen.sort_by_key(|(time, _, _)| *time);
    let mut sessions: Vec<Vec<u64>> = Vec::new();
    let mut last = i64::MIN;
    for (time, _, n) in chosen {
        match sessions.last_mut() {
            Some(session) if *time <= last + 300 => session.push(*n),
            _ => sessions.push(vec![*n]),
        }
        last = *time;
    }
    sessions.sort();
    sessions
}

#[test]
fn windows_of_all_records_are_what_an_oracle_says_also_after_a_restart() -> Result<(), Error> {
    let readings = readings(0x2545_f491_4f6c_dd1d);
    let (first, second) = halves(&readings);
    for (from, to) in [(1, 1), (1, 3), (2, 4), (4, 2)] {
        let mut test = Harness::new();
        let (input, tumbled, slid) = (test.input_of(3), test.output(), test.output());
        let (sessions, number) = (test.output(), test.output());
        let job = || of_all(input.clone(), tumbled.clone(), slid.clone(), sessions.clone(), number.clone());
        test.parallelism(from).start(job())?;
        deal(&input, 3, first);
        test.settle()?;
        test.stop()?;
        assert!((1..in_fives(&readings).len()).contains(&tumbled.committed().len()));

        test.parallelism(to).start(job())?;
        deal(&input, 3, second);
        let summary = test.finish()?;
        assert!(summary.resumed_from.is_some());
        assert_eq!(summary.late.values().sum::<u64>(), 0);
        assert_eq!(tumbled.take_sorted(), in_fives(&readings), "{from} to {to}");
        assert_eq!(slid.take_sorted(), every_two(&readings), "{from} to {to}");
        // Readings of the same time are in no order.
        let in_order = |mut session: Vec<u64>| {
            session.sort_unstable();
            session
        };
        let ordered = |sessions: Vec<Vec<u64>>| sorted(sessions.into_iter().map(in_order));
        assert_eq!(ordered(sessions.take()), ordered(in_sessions(&readings)), "{from} to {to}");
        assert_eq!(number.take(), [100; 10]);
    }
    Ok(())
}

/// A record of a type of its own, with text.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Bid {
    item: String,
    at: u64,
    cents: u64,
}

#[pipeline]
fn auctions(
    input: Input<Bid>,
    highest: Output<(String, u64)>,
    lowest: Output<(i64, String, u64)>,
    steps: Output<(String, Vec<u64>)>,
    words: Output<(u64, String)>,
) {
    let bids = source(input).watermarks(bounded("1s"), |bid| bid.at);
    let by_item = bids.key_by(|bid| bid.item.as_str());
    by_item
        .window(tumbling("1m"))
        .max_by(|bid| bid.cents)
        .map(|(item, bid)| (item.to_owned(), bid.cents + bid.at))
        .sink(highest);
    bids.window_all(sliding("1m", "30s"))
        .min_by(|bid| (bid.cents, bid.item.as_str()))
        .with(|window, bid| (window.start.as_millis(), bid.item, bid.cents))
        .sink(lowest);
    let first = 7u64;
    by_item
        .window(tumbling("1m"))
        .fold(vec![first], |cents, bid| cents.push(bid.cents))
        .with(|item, _, cents| (item.to_owned(), cents))
        .sink(steps);
    // Of records that are lent.
    bids.flat_map(|bid| bid.item.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .window_all(tumbling("1m"))
        .fold(String::new(), |all, word| {
            all.push_str(word);
            all.push(';');
        })
        .map(|all| (all.len() as u64, all))
        .sink(words);
}

#[test]
fn what_is_computed_of_windows() -> Result<(), Error> {
    for parallelism in [1, 2, 4] {
        let mut test = Harness::new();
        let (input, highest, lowest) = (test.input(), test.output(), test.output());
        let (steps, words) = (test.output(), test.output());
        let job = auctions(input.clone(), highest.clone(), lowest.clone(), steps.clone(), words.clone());
        test.parallelism(parallelism).start(job)?;
        let bid = |item: &str, at, cents| Bid { item: item.to_owned(), at, cents };
        input.push_all([
            bid("a chair", 1_000, 5),
            bid("table", 2_000, 9),
            bid("a chair", 1_500, 8),
            bid("a chair", 1_200, 8),
            bid("table", 70_000, 1),
        ]);
        test.finish()?;
        let name = |name: &str| name.to_owned();
        let chair = || name("a chair");
        // Of two that are equal, the earlier one by event time.
        assert_eq!(
            highest.take_sorted(),
            [(chair(), 1_208), (name("table"), 2_009), (name("table"), 70_001)]
        );
        let table = |start| (start, name("table"), 1);
        assert_eq!(
            lowest.take_sorted(),
            [(-30_000, chair(), 5), (0, chair(), 5), table(30_000), table(60_000)]
        );
        assert_eq!(
            steps.take_sorted(),
            [(chair(), vec![7, 5, 8, 8]), (name("table"), vec![7, 1]), (name("table"), vec![7, 9])]
        );
        let all: Vec<_> =
            words.take_sorted().into_iter().map(|(n, words)| (n, words.matches(';').count())).collect();
        assert_eq!(all, [(6, 1), (30, 7)]);
    }
    Ok(())
}

/// A key, a time, and a number.
type Numbered = (u64, i64, u64);

/// Where there are many keys, records wait for each other before they go to the table.
#[pipeline]
fn of_many_keys(input: Input<Numbered>, sums: Output<(i64, u64, u64)>) {
    source(input)
        .watermarks(monotonous(), |(_, time, _)| *time)
        .filter(|(_, _, n)| *n > 0)
        .key_by(|(key, _, _)| *key)
        .window(sliding("1s", "1s"))
        .sum(|(_, _, n)| *n)
        .with(|key, window, sum| (window.start.as_millis(), key, sum))
        .sink(sums);
}

#[test]
fn records_that_wait_for_each_other_are_in_their_windows_when_these_fire() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (input, sums) = (test.input(), test.output());
        test.parallelism(parallelism).start(of_many_keys(input.clone(), sums.clone()))?;
        let (mut random, mut expected, mut late) = (random(7), BTreeMap::new(), 0);
        for batch in 0..3 {
            // Two windows of which the watermark then passes the first; the last batches end with few records.
            let mut key = 0;
            let mut records = Vec::new();
            for i in 0..30_011 - batch * 14_990 {
                key = match random(6) {
                    0 => 7,
                    1 => key,
                    _ => random(40_000),
                };
                let is_late = batch > 0 && i % 97 == 3;
                let second = 2 * (batch - i64::from(is_late));
                let time = 1000 * second + if is_late { 0 } else { random(1500) as i64 };
                let n = random(4);
                records.push((key, time, n));
                if is_late && n > 0 {
                    late += 1;
                } else if n > 0 {
                    *expected.entry((time - time % 1000, key)).or_insert(0) += n;
                }
            }
            // The last one says how far the watermark gets.
            records.push((7, 2000 * batch + 1500, 1));
            *expected.entry((2000 * batch + 1000, 7)).or_insert(0) += 1;
            input.push_all(records);
            test.settle()?;
        }
        let summary = test.finish()?;
        assert_eq!(summary.late.values().sum::<u64>(), late);
        let expected: Vec<_> = expected.into_iter().map(|((start, key), sum)| (start, key, sum)).collect();
        assert_eq!(sums.take_sorted(), expected, "{parallelism}");
    }
    Ok(())
}

#[pipeline(restart = none)]
fn narrow_sums(input: Input<(u64, u8)>, sums: Output<(u64, u8)>) {
    let numbers = source(input).watermarks(monotonous(), |_| 5i64);
    numbers.key_by(|(key, _)| *key).window(tumbling("1s")).sum(|(_, n)| *n).sink(sums);
}

#[test]
fn the_record_that_fails_is_named_though_others_have_come_after_it() -> Result<(), Error> {
    let mut test = Harness::new();
    let (input, sums) = (test.input(), test.output());
    test.start(narrow_sums(input.clone(), sums))?;
    input.push_all((0..40_000).map(|key| (key, 1)));
    test.settle()?;
    input.push_all((0..50).map(|key| (key, if key == 37 { 255 } else { 1 })));
    let error = test.settle().expect_err("256 does not fit").to_string();
    assert!(error.contains("record 37 of push 1") && error.contains("does not fit into `u8`"), "{error}");
    Ok(())
}

#[pipeline(time = processing)]
fn by_the_clock(input: Input<u64>, out: Output<(u64, u64)>, chained: Output<u64>, last: Output<u64>) {
    let numbers = source(input);
    let counts = numbers.key_by(|n| *n).window(tumbling("10s")).count();
    counts.sink(out);
    // What a window gives when its time is over belongs to the next one.
    counts.window_all(tumbling("10s")).sum(|(_, count)| *count).sink(chained);
    numbers.window_all(count(2)).max(|n| *n).sink(last);
}

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

#[test]
fn windows_in_processing_time_go_by_the_clock_and_on_after_a_restart() -> Result<(), Error> {
    for (from, to) in [(1, 1), (1, 2), (3, 2)] {
        let mut test = Harness::new();
        test.starting_at(Timestamp::from_millis(1_000_003));
        let (input, out) = (test.input(), test.output());
        let (chained, last) = (test.output(), test.output());
        let job = || by_the_clock(input.clone(), out.clone(), chained.clone(), last.clone());
        test.parallelism(from).start(job())?;
        input.push_all([1, 2, 1]);
        test.advance(10 * SECOND - 4 * MILLI)?;
        assert_eq!(last.take(), [2]);
        input.push_all([2, 5]);
        test.settle()?;
        assert_eq!(last.take(), [2]);
        assert!(out.take().is_empty(), "a millisecond is left");
        test.advance(MILLI)?;
        assert_eq!(out.take_sorted(), [(1, 2), (2, 2), (5, 1)]);
        assert!(chained.take().is_empty());
        test.stop()?;

        // The window that was open at the stop is over when the job starts again.
        test.clock().advance(11 * SECOND);
        test.parallelism(to).start(job())?;
        test.settle()?;
        assert_eq!(chained.take(), [5]);
        input.push_all([9, 8]);
        let summary = test.finish()?;
        assert_eq!(summary.late.values().sum::<u64>(), 0);
        assert!(out.take().is_empty() && chained.take().is_empty(), "what is open at the end does not fire");
        assert_eq!(last.take(), [9]);
    }
    Ok(())
}

/// Each window says by which time it goes.
#[pipeline]
fn by_both(input: Input<Reading>, by_event: Output<(i64, u64)>, by_clock: Output<(i64, u64)>) {
    let readings = source(input).watermarks(monotonous(), |(time, _, _)| *time);
    let by_sensor = readings.key_by(|(_, sensor, _)| *sensor);
    by_sensor
        .window(tumbling("5s"))
        .count()
        .with(|_, window, count| (window.start.as_millis(), count))
        .sink(by_event);
    by_sensor
        .window(sliding("20s", "10s").processing_time())
        .trigger(trigger::continuous_processing_time("5s"))
        .count()
        .with(|_, window, count| (window.start.as_millis(), count))
        .sink(by_clock);
}

#[test]
fn a_window_in_processing_time_beside_one_in_event_time() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        test.starting_at(Timestamp::from_millis(100_000)).parallelism(parallelism);
        let (input, by_event, by_clock) = (test.input(), test.output(), test.output());
        test.start(by_both(input.clone(), by_event.clone(), by_clock.clone()))?;
        input.push_all([(1_000, 1, 0), (2_000, 1, 0), (7_000, 1, 0)]);
        test.settle()?;
        assert_eq!(by_event.take(), [(0, 2)]);
        assert!(by_clock.take().is_empty());
        test.advance(6 * SECOND)?;
        assert_eq!(by_clock.take_sorted(), [(90_000, 3), (100_000, 3)]);
        // Once early, though twice the time has passed, and once at the end.
        test.advance(14 * SECOND)?;
        let windows = by_clock.take_sorted();
        assert_eq!(windows.iter().filter(|(start, _)| *start == 90_000).count(), 1, "{windows:?}");
        assert!(windows.len() >= 2 && windows.iter().all(|(_, count)| *count == 3), "{windows:?}");
        test.stop()?;
        assert!(by_clock.take().is_empty() && by_event.take().is_empty());
    }
    Ok(())
}

#[pipeline]
fn when_it_enters(input: Input<u64>, seen: Output<u64>, out: Output<(i64, u64)>) {
    let numbers = source(input).watermarks(ingestion());
    numbers.sink(seen);
    let counts = numbers.key_by(|n| n % 2).window(tumbling("10s")).count();
    // There is event time: the second window lines up with the first.
    counts
        .window_all(tumbling("10s"))
        .sum(|(_, count)| *count)
        .with(|window, count| (window.start.as_millis(), count))
        .sink(out);
}

#[test]
fn the_time_of_ingestion_follows_the_clock_while_nothing_comes() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        test.starting_at(Timestamp::from_millis(100_000)).parallelism(parallelism);
        let (input, seen, out) = (test.input(), test.output(), test.output());
        test.start(when_it_enters(input.clone(), seen.clone(), out.clone()))?;
        input.push_all([1, 2, 4]);
        test.advance(10 * SECOND)?;
        assert_eq!(out.take(), [(100_000, 3)]);
        input.push(8);
        test.advance(10 * SECOND)?;
        assert_eq!(out.take(), [(110_000, 1)]);
        input.push_all([1, 2]);
        let summary = test.finish()?;
        // The end of the input is the end of time.
        assert_eq!(out.take(), [(120_000, 2)]);
        assert_eq!(seen.take_sorted(), [1, 1, 2, 2, 4, 8]);
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
    Ok(())
}

// Alignment, on scripts: what is not read, and where splits end, is not seen by the harness.

#[pipeline]
fn aligned(input: Scripted<Reading>, seen: Collected<Reading>, out: Collected<(u64, i64, u64)>) {
    let readings = source(input)
        .watermarks(bounded("0s").with_alignment("10s").with_idleness("1h"), |(time, _, _)| *time);
    readings.sink(seen.transactional());
    readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count))
        .sink(out.transactional());
}

/// A reading a second, in batches of one.
fn seconds(script: Script<Reading>, sensor: u64, seconds: std::ops::Range<i64>) -> Script<Reading> {
    seconds.fold(script, |script, second| script.records([(second * 1_000, sensor, 0)]))
}

#[test]
fn a_split_that_is_ahead_waits_for_the_others() {
    for (parallelism, splits) in [(1, 2), (2, 2), (2, 4), (3, 2)] {
        let (seen, out, gate) = (Collected::new(), Collected::new(), Gate::closed());
        // Some wait in their middle, the last one is at its end early, and some begin with nothing.
        let scripts = (0..splits).map(|split| match split {
            0 => seconds(Script::new(), 0, 0..200),
            1 => seconds(seconds(Script::new(), 1, 0..20).wait(&gate), 1, 20..200),
            2 => seconds(Script::new().wait(&gate), 2, 0..200),
            _ => seconds(Script::new(), 3, 0..5),
        });
        let job = aligned(Scripted::new(scripts).ending(), seen.clone(), out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        // As far as the slowest one lets it, and what was under way already.
        let from = if splits == 2 { 19 } else { 0 };
        let reached = |seen: &[Reading]| seen.iter().filter(|(_, sensor, _)| *sensor == 0).count() as i64;
        seen.wait_for(|seen| reached(seen) >= from + 10);
        // Nothing tells that nothing more comes.
        std::thread::sleep(Duration::from_millis(60));
        let far = reached(&seen.records());
        assert!(far <= from + 10 + 10, "{far} at parallelism {parallelism} with {splits}");
        gate.open();
        let summary = running.wait().expect("the job ends");
        assert_eq!(summary.late.values().sum::<u64>(), 0);
        let full = |sensor: u64| if sensor == 3 { 1 } else { 40 };
        let windows = (0..splits).flat_map(|n| (0..full(n)).map(move |window| (n, window * 5_000, 5)));
        assert_eq!(out.sorted(), windows.collect::<Vec<_>>(), "{parallelism} and {splits}");
    }
}

#[pipeline]
fn aligned_and_idle(input: Scripted<Reading>, seen: Collected<Reading>) {
    source(input)
        .watermarks(bounded("0s").with_alignment("10s").with_idleness("50ms"), |(time, _, _)| *time)
        .sink(seen.transactional());
}

#[test]
fn nobody_waits_for_a_split_that_is_idle() {
    for parallelism in [1, 2] {
        let seen = Collected::new();
        let scripts = [seconds(Script::new(), 0, 0..100), Script::new().never()];
        let job = aligned_and_idle(Scripted::new(scripts), seen.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        seen.wait_for(|seen| seen.len() == 100);
        running.stop();
    }
}

#[pipeline]
fn never_idle(input: Input<Reading>, seen: Output<Reading>) {
    source(input).watermarks(monotonous().with_alignment("10s"), |(time, _, _)| *time).sink(seen);
}

#[test]
fn alignment_without_idleness_is_refused() -> Result<(), Error> {
    let mut test = Harness::new();
    let job = never_idle(test.input(), test.output());
    test.start(job)?;
    let error = test.settle().expect_err("it might wait for ever").to_string();
    assert!(error.contains("with_idleness"), "{error}");
    Ok(())
}

/// What was counted and what was late, as text since there is no other way to be sure that a record is whole.
#[pipeline]
fn with_late(
    input: Input<Reading>,
    out: Output<Counted>,
    late: Output<Reading>,
    again: Output<Counted>,
    most: Output<(u64, u64)>,
    too_late: Output<String>,
) {
    let readings = source(input).watermarks(monotonous(), |(time, _, _)| *time);
    let (counts, late_readings) = readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(sliding("10s", "5s"))
        .late_output()
        .allowed_lateness("2s")
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out);
    late_readings.sink(late);
    // Late records keep their time: there, they are in time for windows that stay open longer.
    late_readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .allowed_lateness("1h")
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count))
        .sink(again);
    let (highest, late_texts) = readings
        .map(|(time, sensor, n)| (format!("{time} {n}"), sensor, n))
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("10s"))
        .late_output()
        .max_by(|(_, _, n)| *n);
    highest.map(|(sensor, (_, _, n))| (sensor, n)).sink(most.clone());
    late_texts.map(|(text, _, _)| text).sink(too_late.clone());
    // A late output that is dropped counts as such.
    let (all, _) = readings.window_all(tumbling("10s")).late_output().sum(|(_, _, n)| *n);
    let (_, late_of_all) = readings.window_all(session("10s")).late_output().count();
    all.map(|n| (99, n)).sink(most);
    late_of_all.map(|(time, _, n)| format!("{time} {n}")).sink(too_late);
}

/// The count of a window: of which sensor, from when, how many.
type Counted = (u64, i64, u64);

/// Readings one after the other in one split, some of which come when their windows are over, and what becomes of them:
/// the counts each time a window fires, and the late ones.
fn sliding_with_late(readings: &[Reading]) -> (Vec<Counted>, Vec<Reading>) {
    let (mut taken, mut fired, mut late) = (BTreeMap::<(i64, u64), u64>::new(), Vec::new(), Vec::new());
    let mut watermark = i64::MIN;
    for batch in readings.chunks(3) {
        for reading in batch {
            let (time, sensor, _) = *reading;
            let last = time.div_euclid(5_000) * 5_000;
            let open = [last - 5_000, last].into_iter().filter(|start| start + 9_999 + 2_000 > watermark);
            let open: Vec<_> = open.collect();
            if open.is_empty() {
                late.push(*reading);
            }
            for start in open {
                let count = taken.entry((start, sensor)).or_insert(0);
                *count += 1;
                if start + 9_999 <= watermark {
                    fired.push((sensor, start, *count));
                }
            }
        }
        let after = batch.iter().map(|(time, _, _)| time - 1).max().unwrap().max(watermark);
        let due = |start: i64| start + 9_999 > watermark && start + 9_999 <= after;
        fired.extend(taken.iter().filter(|((start, _), _)| due(*start)).map(|((s, k), n)| (*k, *s, *n)));
        watermark = after;
    }
    let due = taken.iter().filter(|((start, _), _)| start + 9_999 > watermark);
    fired.extend(due.map(|((start, sensor), count)| (*sensor, *start, *count)));
    (sorted(fired), sorted(late))
}

#[test]
fn late_records_go_to_the_late_output_with_their_time() -> Result<(), Error> {
    // Some of them fall back by up to 40 seconds.
    let mut random = random(0x1234_5678_9abc_def1);
    let back = |random: u64| if random < 8 { random as i64 * 5_000 } else { 0 };
    let mut reading = |i: i64, random_back: bool| {
        let back = if random_back { back(random(40)) } else { 0 };
        (40_000 + i * 400 - back, random(3), random(100))
    };
    let readings: Vec<Reading> = (0..300).map(|i| reading(i, i >= 90)).collect();
    for parallelism in [1, 2, 4] {
        let mut test = Harness::new();
        let (input, out, late, again) = (test.input(), test.output(), test.output(), test.output());
        let (most, too_late) = (test.output(), test.output());
        let job = with_late(
            input.clone(),
            out.clone(),
            late.clone(),
            again.clone(),
            most.clone(),
            too_late.clone(),
        );
        test.parallelism(parallelism).start(job)?;
        readings.chunks(3).for_each(|batch| input.push_all(batch.to_vec()));
        let summary = test.finish()?;
        let (expected, expected_late) = sliding_with_late(&readings);
        assert!(expected_late.len() > 5, "{expected_late:?}");
        assert_eq!(late.take_sorted(), expected_late, "{parallelism}");
        assert_eq!(out.take_sorted(), expected, "{parallelism}");
        // There they are all in time, and the last firing has all of a window.
        let (mut counts, mut fired) = (BTreeMap::new(), BTreeMap::new());
        for (time, sensor, _) in &expected_late {
            *counts.entry((*sensor, time.div_euclid(5_000) * 5_000)).or_insert(0u64) += 1;
        }
        for (sensor, start, count) in again.take() {
            let most = fired.entry((sensor, start)).or_insert(0);
            *most = count.max(*most);
        }
        assert_eq!(fired, counts, "{parallelism}");
        let of = |counts: &BTreeMap<String, u64>, uid: &str| counts.get(uid).copied().unwrap_or_default();
        assert_eq!(of(&summary.late_output, "readings.window"), expected_late.len() as u64, "{summary:?}");
        assert_eq!(of(&summary.late, "readings.window"), 0);
        assert_eq!(of(&summary.late_output, "readings.window_all"), 0);
        assert!(of(&summary.late, "readings.window_all") > 5, "{summary:?}");
        let texts =
            of(&summary.late_output, "readings.window-2") + of(&summary.late_output, "readings.window_all-2");
        assert_eq!(too_late.committed().len() as u64, texts);
        assert!(texts > 5);
        let whole = |text: &String| readings.iter().any(|(time, _, n)| *text == format!("{time} {n}"));
        assert!(too_late.take().iter().all(whole));
    }
    Ok(())
}
