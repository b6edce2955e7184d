//! Windows of all records, in processing time and at the time of ingestion, and what is computed of windows.

mod common;

use std::{collections::BTreeMap, path::Path, time::Duration};

use common::{Collected, Gate, Script, Scripted, often, run, run_with, start};
use flow::{
    Config, Definition, Ending, Job, pipeline,
    time::{Clock, Timestamp},
    watermark::{bounded, ingestion, monotonous},
    window::{aggregate, count, session, sliding, trigger, tumbling},
};

/// A reading: when, by which sensor, how much.
type Reading = (i64, u64, u64);

/// Readings that are out of order by up to two seconds, of 7 sensors over a minute.
fn readings(seed: u64) -> Vec<Reading> {
    let mut state = seed;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    (0..1_000).map(|i| (i * 60 + random(2_000) as i64, random(7), random(100))).collect()
}

/// The readings in `splits` parts, in batches of 50, with a gate in the middle.
fn scripts(readings: &[Reading], splits: usize, gate: &Gate) -> Scripted<Reading> {
    Scripted::new((0..splits).map(|split| {
        let own: Vec<_> = readings.iter().skip(split).step_by(splits).copied().collect();
        let (first, second) = own.split_at(own.len() / 2);
        let batches = |script: Script<Reading>, part: &[Reading]| {
            part.chunks(50).fold(script, |script, batch| script.records(batch.to_vec()))
        };
        batches(batches(Script::new(), first).wait(gate), second)
    }))
}

fn open() -> Gate {
    let gate = Gate::closed();
    gate.open();
    gate
}

fn in_dir<D: Definition>(job: &Job<D>, parallelism: usize, dir: &Path) -> Config {
    Config { checkpoint_dir: Some(dir.to_str().expect("a plain path").to_owned()), ..often(job, parallelism) }
}

/// From when, how many, the sum, the largest and of which sensor.
type Summed = (i64, u64, u64, u64);

#[pipeline]
fn of_all(
    input: Scripted<Reading>,
    tumbled: Collected<Summed>,
    slid: Collected<(i64, u64)>,
    sessions: Collected<Vec<u64>>,
    by_number: Collected<u64>,
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
        .sink(tumbled.transactional());
    readings
        .rebalance()
        .filter(|_| true)
        .window_all(sliding("5s", "2s"))
        .count()
        .with(|window, count| (window.start.as_millis(), count))
        .sink(slid.transactional());
    readings
        .filter(|(_, sensor, n)| *sensor == 1 && *n < 20)
        .global()
        .window_all(session("300ms"))
        .process(|_, readings| readings.map(|(_, _, n)| n).collect::<Vec<_>>())
        .sink(sessions.transactional());
    // Which hundred records come together is not determined, and how many are.
    readings.window_all(count(100)).count().sink(by_number.transactional());
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
fn windows_of_all_records_are_what_an_oracle_says_also_after_a_restart() {
    let readings = readings(0x2545_f491_4f6c_dd1d);
    for (from, to) in [(1, 1), (1, 3), (2, 4), (4, 2)] {
        let dir = tempfile::tempdir().unwrap();
        let (tumbled, slid, sessions, number) =
            (Collected::new(), Collected::new(), Collected::new(), Collected::new());
        let job = |gate: &Gate| {
            let input = scripts(&readings, 3, gate);
            of_all(input, tumbled.clone(), slid.clone(), sessions.clone(), number.clone())
        };
        let first = job(&Gate::closed());
        let config = in_dir(&first, from, dir.path());
        let running = start(first, config);
        tumbled.wait_for(|windows| windows.iter().any(|(start, ..)| *start >= 20_000));
        assert_eq!(running.stop().ending, Ending::Stopped);
        assert!(tumbled.len() < in_fives(&readings).len());

        let second = job(&open());
        let config = in_dir(&second, to, dir.path());
        let summary = run_with(second, config).expect("the job ends");
        assert_eq!(summary.late.values().sum::<u64>(), 0);
        assert_eq!(tumbled.sorted(), in_fives(&readings), "{from} to {to}");
        assert_eq!(slid.sorted(), every_two(&readings), "{from} to {to}");
        // Readings of the same time are in no order.
        let in_order = |mut session: Vec<u64>| {
            session.sort_unstable();
            session
        };
        let ordered = |sessions: Vec<Vec<u64>>| common::sorted(sessions.into_iter().map(in_order));
        assert_eq!(ordered(sessions.records()), ordered(in_sessions(&readings)), "{from} to {to}");
        assert_eq!(number.records(), [100; 10]);
    }
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
    input: Scripted<Bid>,
    highest: Collected<(String, u64)>,
    lowest: Collected<(i64, String, u64)>,
    steps: Collected<(String, Vec<u64>)>,
    words: Collected<(u64, String)>,
) {
    let bids = source(input).watermarks(bounded("1s"), |bid| bid.at);
    let by_item = bids.key_by(|bid| bid.item.as_str());
    by_item
        .window(tumbling("1m"))
        .max_by(|bid| bid.cents)
        .map(|(item, bid)| (item.to_owned(), bid.cents + bid.at))
        .sink(highest.transactional());
    bids.window_all(sliding("1m", "30s"))
        .min_by(|bid| (bid.cents, bid.item.as_str()))
        .with(|window, bid| (window.start.as_millis(), bid.item, bid.cents))
        .sink(lowest.transactional());
    let first = 7u64;
    by_item
        .window(tumbling("1m"))
        .fold(vec![first], |cents, bid| cents.push(bid.cents))
        .with(|item, _, cents| (item.to_owned(), cents))
        .sink(steps.transactional());
    // Of records that are lent.
    bids.flat_map(|bid| bid.item.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .window_all(tumbling("1m"))
        .fold(String::new(), |all, word| {
            all.push_str(word);
            all.push(';');
        })
        .map(|all| (all.len() as u64, all))
        .sink(words.transactional());
}

#[test]
fn what_is_computed_of_windows() {
    for parallelism in [1, 2, 4] {
        let (highest, lowest, steps, words) =
            (Collected::new(), Collected::new(), Collected::new(), Collected::new());
        let bid = |item: &str, at, cents| Bid { item: item.to_owned(), at, cents };
        let bids = [
            bid("a chair", 1_000, 5),
            bid("table", 2_000, 9),
            bid("a chair", 1_500, 8),
            bid("a chair", 1_200, 8),
            bid("table", 70_000, 1),
        ];
        let input = Scripted::new([Script::new().records(bids)]);
        run(auctions(input, highest.clone(), lowest.clone(), steps.clone(), words.clone()), parallelism);
        let name = |name: &str| name.to_owned();
        let chair = || name("a chair");
        // Of two that are equal, the earlier one by event time.
        assert_eq!(highest.sorted(), [(chair(), 1_208), (name("table"), 2_009), (name("table"), 70_001)]);
        let table = |start| (start, name("table"), 1);
        assert_eq!(lowest.sorted(), [(-30_000, chair(), 5), (0, chair(), 5), table(30_000), table(60_000)]);
        assert_eq!(
            steps.sorted(),
            [(chair(), vec![7, 5, 8, 8]), (name("table"), vec![7, 1]), (name("table"), vec![7, 9])]
        );
        let all: Vec<_> =
            words.sorted().into_iter().map(|(n, words)| (n, words.matches(';').count())).collect();
        assert_eq!(all, [(6, 1), (30, 7)]);
    }
}

#[pipeline(time = processing)]
fn by_the_clock(
    input: Scripted<u64>,
    out: Collected<(u64, u64)>,
    chained: Collected<u64>,
    last: Collected<u64>,
) {
    let numbers = source(input);
    let counts = numbers.key_by(|n| *n).window(tumbling("10s")).count();
    counts.sink(out.transactional());
    // What a window gives when its time is over belongs to the next one.
    counts.window_all(tumbling("10s")).sum(|(_, count)| *count).sink(chained.transactional());
    numbers.window_all(count(2)).max(|n| *n).sink(last.transactional());
}

fn with_clock<D: Definition>(job: &Job<D>, parallelism: usize, dir: &Path, clock: &Clock) -> Config {
    Config { clock: clock.clone(), ..in_dir(job, parallelism, dir) }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn windows_in_processing_time_go_by_the_clock_and_on_after_a_restart() {
    for (from, to) in [(1, 1), (1, 2), (3, 2)] {
        let dir = tempfile::tempdir().unwrap();
        let (out, chained, last, gate) =
            (Collected::new(), Collected::new(), Collected::new(), Gate::closed());
        let clock = Clock::manual(Timestamp::from_millis(1_000_003));
        let job = |gate: &Gate, other: &Gate| {
            let script =
                Script::new().records([1, 2, 1]).wait(gate).records([2, 5]).wait(other).records([9, 8]);
            by_the_clock(Scripted::new([script]), out.clone(), chained.clone(), last.clone())
        };
        let first = job(&gate, &Gate::closed());
        let config = with_clock(&first, from, dir.path(), &clock);
        let running = start(first, config);
        last.wait_for(|last| last.len() == 1);
        assert_eq!(out.len(), 0);
        clock.advance(10 * SECOND - Duration::from_millis(4));
        gate.open();
        last.wait_for(|last| last.len() == 2);
        assert_eq!(out.len(), 0, "a millisecond is left");
        clock.advance(Duration::from_millis(1));
        out.wait_for(|out| common::sorted(out.to_vec()) == [(1, 2), (2, 2), (5, 1)]);
        assert_eq!(chained.len(), 0);
        running.stop();

        // The window that was open at the stop is over when the job starts again.
        clock.advance(11 * SECOND);
        let (opened, closed) = (open(), Gate::closed());
        let second = job(&opened, &closed);
        let config = with_clock(&second, to, dir.path(), &clock);
        let running = start(second, config);
        chained.wait_for(|chained| chained == [5]);
        closed.open();
        let summary = running.wait().expect("the job ends");
        assert_eq!(summary.late.values().sum::<u64>(), 0);
        assert_eq!(out.len(), 3, "what is open at the end does not fire");
        assert_eq!(last.sorted(), [2, 2, 9]);
    }
}

/// Each window says by which time it goes.
#[pipeline]
fn by_both(input: Scripted<Reading>, by_event: Collected<(i64, u64)>, by_clock: Collected<(i64, u64)>) {
    let readings = source(input).watermarks(monotonous(), |(time, _, _)| *time);
    let by_sensor = readings.key_by(|(_, sensor, _)| *sensor);
    by_sensor
        .window(tumbling("5s"))
        .count()
        .with(|_, window, count| (window.start.as_millis(), count))
        .sink(by_event.transactional());
    by_sensor
        .window(sliding("20s", "10s").processing_time())
        .trigger(trigger::continuous_processing_time("5s"))
        .count()
        .with(|_, window, count| (window.start.as_millis(), count))
        .sink(by_clock.transactional());
}

#[test]
fn a_window_in_processing_time_beside_one_in_event_time() {
    for parallelism in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let (by_event, by_clock) = (Collected::new(), Collected::new());
        let clock = Clock::manual(Timestamp::from_millis(100_000));
        let script = Script::new().records([(1_000, 1, 0), (2_000, 1, 0), (7_000, 1, 0)]).never();
        let job = by_both(Scripted::new([script]), by_event.clone(), by_clock.clone());
        let config = with_clock(&job, parallelism, dir.path(), &clock);
        let running = start(job, config);
        by_event.wait_for(|windows| windows == [(0, 2)]);
        assert_eq!(by_clock.len(), 0);
        clock.advance(6 * SECOND);
        by_clock.wait_for(|windows| common::sorted(windows.to_vec()) == [(90_000, 3), (100_000, 3)]);
        clock.advance(14 * SECOND);
        // Once early, though twice the time has passed, and once at the end.
        by_clock.wait_for(|windows| windows.len() >= 4);
        running.stop();
        let windows = by_clock.sorted();
        assert_eq!(windows.iter().filter(|(start, _)| *start == 90_000).count(), 2, "{windows:?}");
        assert!(windows.iter().all(|(_, count)| *count == 3));
    }
}

#[pipeline]
fn when_it_enters(input: Scripted<u64>, seen: Collected<u64>, out: Collected<(i64, u64)>) {
    let numbers = source(input).watermarks(ingestion());
    numbers.sink(seen.transactional());
    let counts = numbers.key_by(|n| n % 2).window(tumbling("10s")).count();
    // There is event time: the second window lines up with the first.
    counts
        .window_all(tumbling("10s"))
        .sum(|(_, count)| *count)
        .with(|window, count| (window.start.as_millis(), count))
        .sink(out.transactional());
}

#[test]
fn the_time_of_ingestion_follows_the_clock_while_nothing_comes() {
    for parallelism in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let (seen, out, gates) = (Collected::new(), Collected::new(), [Gate::closed(), Gate::closed()]);
        let clock = Clock::manual(Timestamp::from_millis(100_000));
        let script =
            Script::new().records([1, 2, 4]).wait(&gates[0]).records([8]).wait(&gates[1]).records([1, 2]);
        let job = when_it_enters(Scripted::new([script]), seen.clone(), out.clone());
        let config = with_clock(&job, parallelism, dir.path(), &clock);
        let running = start(job, config);
        seen.wait_for(|seen| seen.len() == 3);
        clock.advance(10 * SECOND);
        out.wait_for(|out| out == [(100_000, 3)]);
        gates[0].open();
        seen.wait_for(|seen| seen.len() == 4);
        clock.advance(10 * SECOND);
        out.wait_for(|out| out == [(100_000, 3), (110_000, 1)]);
        gates[1].open();
        let summary = running.wait().expect("the job ends");
        // The end of the input is the end of time.
        assert_eq!(out.sorted(), [(100_000, 3), (110_000, 1), (120_000, 2)]);
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
}

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
fn never_idle(input: Scripted<Reading>, seen: Collected<Reading>) {
    source(input)
        .watermarks(monotonous().with_alignment("10s"), |(time, _, _)| *time)
        .sink(seen.transactional());
}

#[test]
fn alignment_without_idleness_is_refused() {
    let job = never_idle(Scripted::new([Script::new()]), Collected::new());
    let config = often(&job, 1);
    let error = run_with(job, config).expect_err("it might wait for ever").to_string();
    assert!(error.contains("with_idleness"), "{error}");
}

/// What was counted and what was late, as text since there is no other way to be sure that a record is whole.
#[pipeline]
fn with_late(
    input: Scripted<Reading>,
    out: Collected<Counted>,
    late: Collected<Reading>,
    again: Collected<Counted>,
    most: Collected<(u64, u64)>,
    too_late: Collected<String>,
) {
    let readings = source(input).watermarks(monotonous(), |(time, _, _)| *time);
    let (counts, late_readings) = readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(sliding("10s", "5s"))
        .late_output()
        .allowed_lateness("2s")
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out.transactional());
    late_readings.sink(late.transactional());
    // Late records keep their time: there, they are in time for windows that stay open longer.
    late_readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .allowed_lateness("1h")
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count))
        .sink(again.transactional());
    let (highest, late_texts) = readings
        .map(|(time, sensor, n)| (format!("{time} {n}"), sensor, n))
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("10s"))
        .late_output()
        .max_by(|(_, _, n)| *n);
    highest.map(|(sensor, (_, _, n))| (sensor, n)).sink(most.transactional());
    late_texts.map(|(text, _, _)| text).sink(too_late.transactional());
    // A late output that is dropped counts as such.
    let (all, _) = readings.window_all(tumbling("10s")).late_output().sum(|(_, _, n)| *n);
    let (_, late_of_all) = readings.window_all(session("10s")).late_output().count();
    all.map(|n| (99, n)).sink(most.transactional());
    late_of_all.map(|(time, _, n)| format!("{time} {n}")).sink(too_late.transactional());
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
    (common::sorted(fired), common::sorted(late))
}

#[test]
fn late_records_go_to_the_late_output_with_their_time() {
    // Some of them fall back by up to 40 seconds.
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let back = |random: u64| if random < 8 { random as i64 * 5_000 } else { 0 };
    let mut reading = |i: i64, random_back: bool| {
        let back = if random_back { back(random(40)) } else { 0 };
        (40_000 + i * 400 - back, random(3), random(100))
    };
    let readings: Vec<Reading> = (0..300).map(|i| reading(i, i >= 90)).collect();
    for parallelism in [1, 2, 4] {
        let (out, late, again) = (Collected::new(), Collected::new(), Collected::new());
        let (most, too_late) = (Collected::new(), Collected::new());
        let script = readings.chunks(3).fold(Script::new(), |script, batch| script.records(batch.to_vec()));
        let input = Scripted::new([script]);
        let job = with_late(input, out.clone(), late.clone(), again.clone(), most.clone(), too_late.clone());
        let summary = run(job, parallelism);
        let (expected, expected_late) = sliding_with_late(&readings);
        assert!(expected_late.len() > 5, "{expected_late:?}");
        assert_eq!(late.sorted(), expected_late, "{parallelism}");
        assert_eq!(out.sorted(), expected, "{parallelism}");
        // There they are all in time, and the last firing has all of a window.
        let (mut counts, mut fired) = (BTreeMap::new(), BTreeMap::new());
        for (time, sensor, _) in &expected_late {
            *counts.entry((*sensor, time.div_euclid(5_000) * 5_000)).or_insert(0u64) += 1;
        }
        for (sensor, start, count) in again.records() {
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
        assert_eq!(too_late.len() as u64, texts);
        assert!(texts > 5);
        let whole = |text: &String| readings.iter().any(|(time, _, n)| *text == format!("{time} {n}"));
        assert!(too_late.records().iter().all(whole));
    }
}
