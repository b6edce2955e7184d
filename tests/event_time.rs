//! Event time from the source to the windows: what a watermark waits for, what it makes fire, and what outlives a
//! restart. What windows do with it is tested where they are.

mod common;

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use common::{Collected, Gate, Script, Scripted, config, often, run, run_with, start};
use flow::{
    BoxError, Config, Definition, Ending, Job, Stream, pipeline,
    time::Timestamp,
    watermark::{bounded, monotonous, punctuated},
    window::{aggregate, count, evict, session, sliding, trigger, tumbling},
};

/// A reading: when, by which sensor, how much.
type Reading = (i64, u64, u64);
/// The count of a window: of which sensor, from when, how many.
type Counted = (u64, i64, u64);

#[pipeline]
fn tumbled(input: Scripted<Reading>, out: Collected<Counted>) {
    let readings = source(input).watermarks(bounded("2s"), |(time, _, _)| *time);
    let counts = readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out.transactional());
}

#[pipeline]
fn slid(input: Scripted<Reading>, out: Collected<Counted>) {
    let counts = source(input)
        .watermarks(bounded("2s"), |(time, _, _)| Timestamp::from_millis(*time))
        .rebalance()
        .filter(|_| true)
        .key_by(|(_, sensor, _)| *sensor)
        .window(sliding("5s", "2s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out.transactional());
}

#[pipeline]
fn in_sessions(input: Scripted<Reading>, out: Collected<Counted>) {
    let counts = source(input)
        .map(|(time, sensor, _)| {
            (sensor, SystemTime::try_from(Timestamp::from_millis(time)).expect("a time"))
        })
        .watermarks(bounded("2s"), |(_, time)| *time)
        .key_by(|(sensor, _)| *sensor)
        .window(session("300ms"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out.transactional());
}

/// Readings that are out of order by up to two seconds, of 7 sensors over about two minutes.
fn readings(seed: u64) -> Vec<Reading> {
    let mut state = seed;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    (0..2_000).map(|i| (i * 60 + random(2_000) as i64, random(7), random(100))).collect()
}

/// The readings in `splits` parts, in batches of 50, each of which keeps their order.
fn scripts(readings: &[Reading], splits: usize) -> Scripted<Reading> {
    Scripted::new((0..splits).map(|split| {
        let own: Vec<_> = readings.iter().skip(split).step_by(splits).copied().collect();
        own.chunks(50).fold(Script::new(), |script, batch| script.records(batch.to_vec()))
    }))
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
fn windows_over_input_out_of_order_are_what_an_oracle_says() {
    let readings = readings(0x2545_f491_4f6c_dd1d);
    for (parallelism, splits) in [(1, 1), (1, 3), (2, 3), (4, 5), (4, 2)] {
        let out = Collected::new();
        let summary = run(tumbled(scripts(&readings, splits), out.clone()), parallelism);
        assert_eq!(out.sorted(), counted(&readings, in_fives), "tumbling, {parallelism} and {splits}");
        assert_eq!(summary.late.values().sum::<u64>(), 0);

        let out = Collected::new();
        run(slid(scripts(&readings, splits), out.clone()), parallelism);
        assert_eq!(out.sorted(), counted(&readings, every_two), "sliding, {parallelism} and {splits}");

        let out = Collected::new();
        run(in_sessions(scripts(&readings, splits), out.clone()), parallelism);
        assert_eq!(out.sorted(), sessions(&readings), "sessions, {parallelism} and {splits}");
    }
}

#[pipeline]
fn roundabout(input: Scripted<Reading>, out: Collected<Counted>) {
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
        .sink(out.transactional());
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
fn with_a_helper(input: Scripted<Reading>, out: Collected<Counted>, again: Collected<Counted>) {
    let readings = source(input);
    let counted = in_a_helper(readings, Duration::from_secs(4));
    counted.sink(out.transactional());
    // Another event time for the same records.
    readings
        .watermarks(bounded("3s"), |(time, _, _)| *time + 1_000_000)
        .key_by(|(_, sensor, _)| *sensor)
        .window(sliding("5s", "2s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis() - 1_000_000, count))
        .sink(again.transactional());
}

#[pipeline(mode = batch)]
fn windows_per_sensor(input: Scripted<Reading>, out: Collected<(u64, u64)>) {
    let readings = source(input).watermarks(bounded("2s"), |(time, _, _)| *time);
    let counts = readings.key_by(|(_, sensor, _)| *sensor).window(tumbling("5s")).count();
    // Over all windows, at the end.
    counts.key_by(|(sensor, _)| *sensor).count().sink(out.transactional());
}

#[test]
fn event_time_takes_every_way_that_records_take() {
    let readings = readings(0x1234_5678_9abc_def1);
    for (parallelism, splits) in [(1, 2), (2, 3), (4, 1)] {
        let out = Collected::new();
        let summary = run(roundabout(scripts(&readings, splits), out.clone()), parallelism);
        assert_eq!(out.sorted(), counted(&readings, in_fives), "{parallelism} and {splits}");
        assert_eq!(summary.late.values().sum::<u64>(), 0);

        // At the helper the splits come mixed, so one split's records are all there is to go by.
        let (out, again) = (Collected::new(), Collected::new());
        run(with_a_helper(scripts(&readings, 1), out.clone(), again.clone()), parallelism);
        assert_eq!(out.sorted(), counted(&readings, in_fives), "{parallelism}");
        assert_eq!(again.sorted(), counted(&readings, every_two), "{parallelism}");

        let out = Collected::new();
        run(windows_per_sensor(scripts(&readings, splits), out.clone()), parallelism);
        let windows = |sensor| counted(&readings, in_fives).iter().filter(|count| count.0 == sensor).count();
        assert_eq!(out.sorted(), (0..7).map(|sensor| (sensor, windows(sensor) as u64)).collect::<Vec<_>>());
    }
}

fn in_dir<D: Definition>(job: &Job<D>, parallelism: usize, dir: &Path) -> Config {
    Config { checkpoint_dir: Some(dir.to_str().expect("a plain path").to_owned()), ..often(job, parallelism) }
}

#[test]
fn windows_that_are_open_at_a_checkpoint_go_on_at_another_parallelism() {
    let readings = readings(0x9e37_79b9_7f4a_7c15);
    for (from, to) in [(1, 3), (3, 1), (2, 4), (2, 2)] {
        let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
        let gated = |gate: &Gate| {
            Scripted::new((0..3).map(|split| {
                let own: Vec<_> = readings.iter().skip(split).step_by(3).copied().collect();
                let (first, second) = own.split_at(own.len() / 2);
                let batches = |script: Script<Reading>, part: &[Reading]| {
                    part.chunks(50).fold(script, |script, batch| script.records(batch.to_vec()))
                };
                batches(batches(Script::new(), first).wait(gate), second)
            }))
        };
        let job = tumbled(gated(&Gate::closed()), out.clone());
        let config = in_dir(&job, from, dir.path());
        let running = start(job, config);
        // The last window that can be complete begins about 5 + 2 seconds before the middle.
        out.wait_for(|counts| counts.iter().any(|(_, start, _)| *start >= 50_000));
        assert_eq!(running.stop().ending, Ending::Stopped);
        assert!(out.len() < counted(&readings, in_fives).len());

        let gate = Gate::closed();
        gate.open();
        let job = tumbled(gated(&gate), out.clone());
        let config = in_dir(&job, to, dir.path());
        let summary = run_with(job, config).expect("the job ends");
        assert!(summary.resumed_from.is_some());
        assert_eq!(out.sorted(), counted(&readings, in_fives), "{from} to {to}");
        assert_eq!(summary.late.values().sum::<u64>(), 0, "{from} to {to}");
    }
}

#[test]
fn what_was_late_before_a_restart_is_late_after_it() {
    for parallelism in [1, 2] {
        let (dir, out) = (tempfile::tempdir().unwrap(), Collected::new());
        let script = |gate: &Gate| {
            let late =
                Script::new().records([(1_000, 1, 0), (20_000, 1, 0)]).wait(gate).records([(2_000, 1, 0)]);
            Scripted::new([late])
        };
        let job = tumbled(script(&Gate::closed()), out.clone());
        let config = in_dir(&job, parallelism, dir.path());
        let running = start(job, config);
        out.wait_for(|counts| counts == [(1, 0, 1)]);
        running.stop();

        let gate = Gate::closed();
        gate.open();
        let job = tumbled(script(&gate), out.clone());
        let config = in_dir(&job, parallelism, dir.path());
        let summary = run_with(job, config).expect("the job ends");
        assert_eq!(summary.late.values().sum::<u64>(), 1);
        assert_eq!(out.sorted(), [(1, 0, 1), (1, 20_000, 1)]);
    }
}

#[test]
fn the_watermark_is_the_minimum_over_splits() {
    for parallelism in [1, 2] {
        let (out, gate) = (Collected::new(), Gate::closed());
        let ahead = Script::new().records([(1_000, 1, 0), (60_000, 1, 0)]).wait(&gate);
        let behind =
            Script::new().records([(2_000, 1, 0)]).wait(&gate).records([(7_000, 2, 0), (3_000, 1, 0)]);
        let job = tumbled(Scripted::new([ahead, behind]), out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(out.len(), 0, "one split is at 2 s");
        gate.open();
        let summary = running.wait().expect("the job ends");
        assert_eq!(out.sorted(), [(1, 0, 3), (1, 60_000, 1), (2, 5_000, 1)]);
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
}

#[test]
fn a_split_without_records_holds_all_back_and_a_subtask_without_splits_does_not() {
    let (out, gate) = (Collected::new(), Gate::closed());
    // Four subtasks, of which two have a split.
    let first = Script::new().records([(1_000, 1, 0), (60_000, 1, 0)]).wait(&gate);
    let second = Script::new().wait(&gate).records([(61_000, 1, 0)]).never();
    let job = tumbled(Scripted::new([first, second]), out.clone());
    let config = often(&job, 4);
    let running = start(job, config);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(out.len(), 0, "nobody knows what is in the second split");
    gate.open();
    out.wait_for(|counts| counts == [(1, 0, 1)]);
    running.stop();
    assert_eq!(out.len(), 1, "a job that is stopped is not at the end of its input");
}

#[pipeline]
fn with_idleness(input: Scripted<Reading>, out: Collected<Counted>) {
    let readings = source(input).watermarks(bounded("2s").with_idleness("50ms"), |(time, _, _)| *time);
    readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count))
        .sink(out.transactional());
}

#[test]
fn an_idle_split_is_left_out_until_it_wakes() {
    for parallelism in [1, 2] {
        let (out, gates) = (Collected::new(), [Gate::closed(), Gate::closed()]);
        let busy = (1..40).fold(Script::new(), |script, second| {
            script.records([(second * 1_000, 1, 0)]).pause(Duration::from_millis(10))
        });
        let idle = Script::new().wait(&gates[0]).records([(50_000, 2, 0), (1_000, 2, 0)]).wait(&gates[1]);
        let job = with_idleness(Scripted::new([busy.wait(&gates[1]), idle]), out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        out.wait_for(|counts| counts.iter().any(|(_, start, _)| *start == 25_000));
        // What wakes behind the watermark does not take it back.
        gates[0].open();
        gates[1].open();
        let summary = running.wait().expect("the job ends");
        assert_eq!(summary.late.values().sum::<u64>(), 1);
        let fives = (0..8).map(|window| (1, window * 5_000, if window == 0 { 4 } else { 5 }));
        assert_eq!(out.sorted(), fives.chain([(2, 50_000, 1)]).collect::<Vec<_>>());
    }
}

#[pipeline]
fn of_two_inputs(a: Scripted<Reading>, b: Scripted<Reading>, out: Collected<(u64, u64)>) {
    let a = source(a).watermarks(monotonous(), |(time, _, _)| *time);
    let b =
        source(b).filter(|(_, _, n)| *n > 0).watermarks(monotonous(), |(time, _, _)| *time).parallelism(1);
    let all = a.union(b);
    all.key_by(|(_, sensor, _)| *sensor).window(tumbling("5s")).sum(|(_, _, n)| *n).sink(out.transactional());
}

#[test]
fn of_two_inputs_the_slower_one_counts() {
    for parallelism in [1, 3] {
        let (out, gate) = (Collected::new(), Gate::closed());
        let fast = Scripted::new([Script::new().records([(1_000, 1, 1), (30_000, 1, 2)]).wait(&gate)]);
        let slow = Scripted::new([Script::new()
            .records([(4_000, 1, 4)])
            .wait(&gate)
            .records([(4_500, 1, 8), (4_600, 1, 0)])
            .pause(Duration::from_millis(50))
            .records([(40_000, 1, 16)])]);
        let job = of_two_inputs(fast, slow, out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(out.len(), 0);
        gate.open();
        let summary = running.wait().expect("the job ends");
        assert_eq!(summary.late.values().sum::<u64>(), 0);
        assert_eq!(out.sorted(), [(1, 2), (1, 13), (1, 16)], "{parallelism}");
    }
}

/// Words, that borrow from what they are cut from.
#[pipeline]
fn busiest(input: Scripted<(i64, String)>, out: Collected<(String, i64, u64)>) {
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
        .sink(out.transactional());
}

#[test]
fn windows_that_follow_windows_line_up() {
    for parallelism in [1, 2] {
        let out = Collected::new();
        let line = |time: i64, line: &str| (time, line.to_owned());
        let lines =
            [line(10, "to be or not to be or to"), line(999, "be"), line(1_500, "a a b"), line(9_000, "c")];
        run(busiest(Scripted::new([Script::new().records(lines)]), out.clone()), parallelism);
        let word = |word: &str, start, count| (word.to_owned(), start, count);
        assert_eq!(out.sorted(), [word("a", 1_000, 2), word("be", 0, 3), word("c", 9_000, 1)]);
    }
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
    input: Scripted<Purchase>,
    most: Collected<(String, u64)>,
    all: Collected<(String, Vec<u64>)>,
    both: Collected<(String, (u64, u64))>,
) {
    let purchases = source(input).watermarks(bounded("1s"), |purchase| purchase.at);
    let by_customer = purchases.key_by(|purchase| purchase.customer.as_str());
    by_customer
        .window(tumbling("1m"))
        .allowed_lateness("10s")
        .max(|purchase| purchase.cents)
        .map(|(customer, cents)| (customer.to_owned(), cents))
        .sink(most.transactional());
    by_customer
        .window(tumbling("1m"))
        .evictor(evict::count(2))
        .process(|customer, _, purchases| {
            (customer.to_owned(), purchases.map(|p| p.cents).collect::<Vec<_>>())
        })
        .sink(all.transactional());
    by_customer
        .window(tumbling("1m"))
        .trigger(trigger::purging(trigger::event_time()))
        .aggregate((aggregate::count(), aggregate::sum(|purchase: &Purchase| purchase.cents)))
        .map(|(customer, spent)| (customer.to_owned(), spent))
        .sink(both.transactional());
}

#[test]
fn records_of_a_type_of_ones_own_in_windows_of_all_kinds() {
    for parallelism in [1, 2] {
        let (most, all, both) = (Collected::new(), Collected::new(), Collected::new());
        let buy = |customer: &str, at, cents| Purchase { customer: customer.to_owned(), at, cents };
        let purchases =
            [buy("ann", 1_000, 5), buy("bob", 500, 7), buy("ann", 2_000, 3), buy("ann", 1_500, 9)];
        // The window of the first minute fires, and then again.
        let gate = Gate::closed();
        let input = Script::new().records(purchases).records([buy("bob", 62_000, 1)]).wait(&gate);
        let input = Scripted::new([input.records([buy("ann", 3_000, 11)])]);
        let job = spent(input, most.clone(), all.clone(), both.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        most.wait_for(|most| most.len() == 2);
        gate.open();
        running.wait().expect("the job ends");
        let name = |name: &str| name.to_owned();
        let (ann, bob) = (|| name("ann"), || name("bob"));
        assert_eq!(most.sorted(), [(ann(), 9), (ann(), 11), (bob(), 1), (bob(), 7)]);
        assert_eq!(all.sorted(), [(ann(), vec![9, 3]), (bob(), vec![1]), (bob(), vec![7])]);
        assert_eq!(both.sorted(), [(ann(), (3, 17)), (bob(), (1, 1)), (bob(), (1, 7))]);
    }
}

#[pipeline]
fn by_number(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    source(input).key_by(|n| n % 2).window(count(3)).sum(|n| *n).sink(out.transactional());
}

#[test]
fn windows_by_number_need_no_event_time_and_a_rest_is_not_emitted() {
    for parallelism in [1, 2] {
        let out = Collected::new();
        run(by_number(Scripted::new([Script::new().records(0..14)]), out.clone()), parallelism);
        assert_eq!(out.sorted(), [(0, 6), (0, 24), (1, 9), (1, 27)]);
    }
}

/// A mark in the stream says that all before it has come.
#[pipeline]
fn marked(input: Scripted<(i64, bool)>, out: Collected<u64>) {
    source(input)
        .watermarks(punctuated(), |(time, complete)| (*time, complete.then_some(*time)))
        .filter(|(_, complete)| !complete)
        .key_by(|_| ())
        .window(tumbling("1s"))
        .count()
        .with(|(), _, count| count)
        .sink(out.transactional());
}

#[test]
fn a_punctuation_lets_windows_fire() {
    for parallelism in [1, 2] {
        let (gate, out) = (Gate::closed(), Collected::new());
        let first = Script::new().records([(100, false), (5_000, false), (900, false), (999, true)]);
        // Late only once the windows know of the mark, and those of another subtask wait until that says it has no split.
        let late = first.wait(&gate).records([(998, false), (6_000, true)]);
        let job = marked(Scripted::new([late.never()]), out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        out.wait_for(|counts| counts == [2]);
        gate.open();
        out.wait_for(|counts| counts == [2, 1]);
        let summary = running.stop();
        assert_eq!(summary.late.values().sum::<u64>(), 1);
    }
}

#[pipeline]
fn parsed(input: Scripted<String>, out: Collected<(u64, u64)>) {
    source(input)
        .map(|line| line)
        .watermarks(bounded("1s").with_max_ahead("1h"), |line| Ok(line.trim().parse::<i64>()?))
        .on_error(skip)
        .key_by(|_| 0u64)
        .window(tumbling("1d"))
        .count()
        .sink(out.transactional());
}

#[pipeline]
fn must_parse(input: Scripted<String>, out: Collected<(u64, u64)>) {
    let times = source(input).watermarks(monotonous(), |line| line.parse::<i64>());
    times.key_by(|_| 0u64).window(tumbling("1d")).count().sink(out.transactional());
}

#[test]
fn a_timestamp_that_is_missing_or_absurd_is_an_error_and_never_1970() {
    let lines =
        |lines: &[&str]| Scripted::new([Script::new().records(lines.iter().map(|line| (*line).to_owned()))]);
    let ahead = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(86_400 * 365);
    let ahead = ahead.as_millis().to_string();
    for parallelism in [1, 2] {
        let out = Collected::new();
        let summary = run(parsed(lines(&["5", "x", &ahead, "7"]), out.clone()), parallelism);
        assert_eq!(summary.skipped.values().sum::<u64>(), 2);
        assert_eq!(out.records(), [(0, 2)]);

        let job = must_parse(lines(&["5", "x"]), Collected::new());
        let config = Config { restart: flow::Restart::Never, ..config(&job, parallelism) };
        let error = run_with(job, config).expect_err("`x` is no time").to_string();
        assert!(error.contains("times.watermarks") && error.contains("invalid digit"), "{error}");
    }
}

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
fn wrong(input: Scripted<u64>, idle: Duration, out: Collected<(u64, u64)>) {
    let numbers = source(input).watermarks(monotonous().with_idleness(idle), |n| *n);
    numbers.key_by(|n| *n).window(tumbling(Duration::ZERO)).count().sink(out.transactional());
}

#[test]
fn what_makes_no_sense_is_refused_before_the_first_record() {
    for idle in [1, 100] {
        let job = wrong(Scripted::new([Script::new()]), Duration::from_millis(idle), Collected::new());
        let config = config(&job, 1);
        let error: BoxError = run_with(job, config).expect_err("windows of no size").into();
        let (operator, why) =
            if idle == 1 { ("numbers.watermarks", "at least 10ms") } else { ("window", "size of a window") };
        assert!(error.to_string().contains(operator) && error.to_string().contains(why), "{error}");
    }
}
