//! Keyed process functions: state, timers, two outputs, at several parallelisms and across restarts.

use std::{collections::BTreeMap, time::Duration};

use flow::{
    BoxError, Error, KeyedProcessFunction, ListState, MapState, ProcessFunction, ReducingState, State, Text,
    Timer, ValueState,
    collection::range,
    pipeline,
    process::{KeyedContext, NoSide, ProcessContext, Reducer, TimeDomain},
    testing::{Harness, Input, Output},
    time::{Timestamp, Watermark},
    watermark::bounded,
    window::tumbling,
};

use crate::common::{halves, random, sorted};

/// A reading: when, by which sensor, how much.
type Reading = (i64, u64, u64);

/// Sums what comes within a second of a key's first reading, and gives it when event time gets there. Readings above the
/// limit go aside.
#[derive(Clone)]
struct SumPerSecond {
    limit: u64,
}

struct Largest;

impl Reducer<u64> for Largest {
    fn reduce(held: u64, next: u64) -> u64 {
        held.max(next)
    }
}

#[derive(State)]
struct Open {
    sum: ValueState<u64>,
    largest: ReducingState<u64, Largest>,
    amounts: ListState<u64>,
    times: MapState<i64, u64>,
}

impl KeyedProcessFunction for SumPerSecond {
    type Key = u64;
    type In = Reading;
    /// Sensor, end, sum, largest, number.
    type Out = (u64, i64, u64, u64, usize);
    type Side = Reading;
    type State = Open;

    fn process(
        &mut self,
        state: &mut Open,
        (time, sensor, amount): Reading,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        assert_eq!((*cx.key(), cx.timestamp()), (sensor, Some(Timestamp::from_millis(time))));
        if amount > self.limit {
            cx.emit_side((time, sensor, amount));
            return Ok(());
        }
        if state.sum.get().is_none() {
            cx.register_event_time_timer(Timestamp::from_millis(time + 1_000));
        }
        *state.sum.get_or_default() += amount;
        state.largest.add(amount);
        state.amounts.push(amount);
        *state.times.get_or_insert_with(time, || 0) += 1;
        Ok(())
    }

    fn on_timer(
        &mut self,
        state: &mut Open,
        timer: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        assert_eq!(timer.domain, TimeDomain::EventTime);
        let (sum, largest) = (state.sum.take().ok_or("a sum")?, *state.largest.get().ok_or("a largest")?);
        let amounts = state.amounts.take();
        assert_eq!(amounts.iter().sum::<u64>(), sum);
        assert_eq!(state.times.values().sum::<u64>() as usize, amounts.len());
        state.times.clear();
        state.largest.clear();
        cx.emit((*cx.key(), timer.time.as_millis(), sum, largest, amounts.len()));
        Ok(())
    }
}

#[pipeline]
fn per_second(
    input: Input<Reading>,
    limit: u64,
    out: Output<(u64, i64, u64, u64, usize)>,
    high: Output<Reading>,
) {
    let readings = source(input).watermarks(bounded("2s"), |(time, _, _)| *time);
    let (sums, above) = readings.key_by(|(_, sensor, _)| *sensor).process(SumPerSecond { limit });
    sums.sink(out);
    above.sink(high);
}

/// In order, so that the oracle need not know about watermarks.
fn readings() -> Vec<Reading> {
    let mut random = random(7);
    (0..2_000).map(|i| (i * 30 + random(30) as i64, random(7), random(110))).collect()
}

fn expected(readings: &[Reading], limit: u64) -> Vec<(u64, i64, u64, u64, usize)> {
    let mut open: BTreeMap<u64, (i64, u64, u64, usize)> = BTreeMap::new();
    let mut out = Vec::new();
    let mut watermark = i64::MIN;
    for &(time, sensor, amount) in readings {
        if amount <= limit {
            if let Some(&(end, sum, largest, number)) = open.get(&sensor)
                && end <= watermark
            {
                out.push((sensor, end, sum, largest, number));
                open.remove(&sensor);
            }
            let entry = open.entry(sensor).or_insert((time + 1_000, 0, 0, 0));
            (entry.1, entry.2, entry.3) = (entry.1 + amount, entry.2.max(amount), entry.3 + 1);
        }
        watermark = time - 2_000 - 1;
    }
    let rest = open.into_iter();
    out.extend(rest.map(|(sensor, (end, sum, largest, number))| (sensor, end, sum, largest, number)));
    sorted(out)
}

#[test]
fn timers_fire_in_event_time_and_state_is_kept_per_key() -> Result<(), Error> {
    let readings = readings();
    for parallelism in [1, 3] {
        let mut test = Harness::new();
        let (input, out, high) = (test.input(), test.output(), test.output());
        test.parallelism(parallelism).start(per_second(input.clone(), 100, out.clone(), high.clone()))?;
        // One at a time: timers fire after each.
        readings.iter().for_each(|reading| input.push(*reading));
        test.finish()?;
        assert_eq!(out.take_sorted(), expected(&readings, 100), "at parallelism {parallelism}");
        assert_eq!(high.take_sorted(), sorted(readings.iter().copied().filter(|reading| reading.2 > 100)));
    }
    Ok(())
}

#[test]
fn state_and_timers_survive_a_stop_and_a_crash_and_another_parallelism() -> Result<(), Error> {
    let readings = readings();
    let (first, second) = halves(&readings);
    for (before, after) in [(1, 1), (1, 4), (4, 2), (3, 1)] {
        let mut test = Harness::new();
        let (input, out, high) = (test.input(), test.output(), test.output());
        let job = || per_second(input.clone(), 100, out.clone(), high.clone());
        test.parallelism(before).start(job())?;
        first.iter().for_each(|reading| input.push(*reading));
        test.settle()?;
        if before == 3 {
            test.crash();
        } else {
            test.stop()?;
        }
        let above = first.iter().filter(|reading| reading.2 > 100).count();
        assert_eq!(high.take().len(), above);
        test.parallelism(after).start(job())?;
        second.iter().for_each(|reading| input.push(*reading));
        let summary = test.finish()?;
        assert!(summary.resumed_from.is_some());
        assert_eq!(out.take_sorted(), expected(&readings, 100), "{before} to {after}");
    }
    Ok(())
}

#[derive(State)]
struct Idles {
    sum: ValueState<u64>,
    timer: ValueState<Timestamp>,
}

#[pipeline]
fn by_the_clock(input: Input<(String, u64)>, out: Output<(String, u64)>) {
    source(input).key_by(|(word, _)| word.clone()).process(Quiet).sink(out);
}

/// Gives the sum of a key that was quiet for five seconds by the clock.
struct Quiet;

impl KeyedProcessFunction for Quiet {
    type Key = String;
    type In = (String, u64);
    type Out = (String, u64);
    type Side = NoSide;
    type State = Idles;

    fn process(
        &mut self,
        state: &mut Idles,
        (_, n): (String, u64),
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        assert_eq!((cx.timestamp(), cx.watermark()), (None, Watermark::MIN));
        *state.sum.get_or_default() += n;
        if let Some(before) = state.timer.take() {
            cx.delete_processing_time_timer(before);
        }
        let timer = cx.processing_time().plus_millis(5_000);
        cx.register_processing_time_timer(timer);
        state.timer.set(timer);
        Ok(())
    }

    fn on_timer(
        &mut self,
        state: &mut Idles,
        timer: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        assert_eq!(timer.domain, TimeDomain::ProcessingTime);
        cx.emit((cx.key().clone(), state.sum.take().unwrap_or(0)));
        state.timer.clear();
        Ok(())
    }
}

#[test]
fn timers_by_the_clock_fire_when_it_gets_there_and_can_be_deleted() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        test.starting_at(Timestamp::from_millis(1_000)).parallelism(parallelism);
        let (input, out) = (test.input(), test.output());
        test.start(by_the_clock(input.clone(), out.clone()))?;
        let of = |word: &str, n| (word.to_owned(), n);
        input.push_all([of("a", 1), of("b", 2)]);
        test.advance(Duration::from_secs(3))?;
        input.push(of("a", 10));
        test.advance(Duration::from_millis(2_500))?;
        assert_eq!(out.take(), [of("b", 2)]);
        test.advance(Duration::from_millis(2_500))?;
        assert_eq!(out.take(), [of("a", 11)]);
        test.stop()?;
        assert!(out.take().is_empty());
    }
    Ok(())
}

/// Sums without state of its own, as text, with a counter of all that this subtask has seen.
struct Plain;

impl ProcessFunction for Plain {
    type In = Text;
    type Out = u64;
    type Side = String;
    type State = Vec<u64>;

    fn process(
        &mut self,
        seen: &mut Vec<u64>,
        line: Text,
        cx: &mut ProcessContext<'_, Self>,
    ) -> Result<(), BoxError> {
        if &*line == "bad" {
            cx.emit(0);
            return Err("a bad line".into());
        }
        match line.parse::<u64>() {
            Ok(number) => {
                seen.push(number);
                cx.emit(seen.iter().sum());
                cx.emit(number);
            }
            Err(_) => cx.emit_side(line.to_string()),
        }
        Ok(())
    }
}

#[pipeline]
fn plain(path: &str, out: Output<u64>, words: Output<String>) {
    let (numbers, rest) = source(flow::file::text(path)).process(Plain).on_error(skip);
    numbers.map(|n| n * 10).sink(out);
    rest.sink(words);
}

#[test]
fn a_function_without_key_emits_to_two_outputs_and_skips_what_fails() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("in");
    std::fs::write(&path, "1\nbad\nx\n2\n").expect("written");
    let mut test = Harness::new();
    let (out, words) = (test.output(), test.output());
    test.start(plain(path.to_str().expect("text"), out.clone(), words.clone()))?;
    let summary = test.finish()?;
    assert_eq!(out.take(), [10, 10, 30, 20]);
    assert_eq!(words.take(), ["x"]);
    assert_eq!(summary.skipped.values().sum::<u64>(), 1);
    Ok(())
}

#[pipeline]
fn chained(out: Output<(u64, u64)>) {
    let numbers = source(range(0..1_000)).watermarks(bounded("1ms"), |n| Timestamp::from_millis(*n as i64));
    let later = numbers.key_by(|n| n % 3).process(Later);
    later.key_by(|n| n % 3).window(tumbling("100ms")).count().sink(out);
}

/// Emits each number ten milliseconds later.
struct Later;

impl KeyedProcessFunction for Later {
    type Key = u64;
    type In = u64;
    type Out = u64;
    type Side = NoSide;
    type State = Waiting;

    fn process(
        &mut self,
        state: &mut Waiting,
        n: u64,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let time = cx.timestamp().ok_or("a time")?.plus_millis(10);
        state.numbers.insert(time, n);
        cx.register_event_time_timer(time);
        Ok(())
    }

    fn on_timer(
        &mut self,
        state: &mut Waiting,
        timer: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        cx.emit(state.numbers.remove(&timer.time).ok_or("a number")?);
        Ok(())
    }
}

#[derive(State)]
struct Waiting {
    numbers: MapState<Timestamp, u64>,
}

#[test]
fn what_timers_emit_has_their_time_in_the_windows_that_follow() -> Result<(), Error> {
    let mut expected = BTreeMap::new();
    for n in 0..1_000u64 {
        *expected.entry((n % 3, (n + 10) / 100)).or_insert(0u64) += 1;
    }
    let expected = sorted(expected.into_iter().map(|((key, _), count)| (key, count)));
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let out = test.output();
        test.parallelism(parallelism).start(chained(out.clone()))?;
        test.finish()?;
        assert_eq!(out.take_sorted(), expected);
    }
    Ok(())
}

#[pipeline]
fn untimed(out: Output<u64>) {
    source(range(0..10)).key_by(|n| n % 3).process(Eager).sink(out);
}

/// Sets a timer of event time, whether there is any or not.
struct Eager;

impl KeyedProcessFunction for Eager {
    type Key = u64;
    type In = u64;
    type Out = u64;
    type Side = NoSide;
    type State = ();

    fn process(&mut self, _: &mut (), n: u64, cx: &mut KeyedContext<'_, Self>) -> Result<(), BoxError> {
        cx.register_event_time_timer(Timestamp::from_millis(n as i64));
        Ok(())
    }
}

#[test]
fn a_timer_of_event_time_is_refused_where_there_is_none() -> Result<(), Error> {
    let mut test = Harness::new();
    let out = test.output();
    test.start(untimed(out))?;
    let error = test.finish().expect_err("it would never fire").to_string();
    assert!(error.contains("out.process") || error.contains("process"), "{error}");
    assert!(error.contains("add `.watermarks(.., |record| ..)` before `.key_by(..)`"), "{error}");
    Ok(())
}

/// Counts the records of a key within ten seconds by the clock of the one before.
struct Streak;

#[derive(State)]
struct Running {
    #[state(ttl = "10s")]
    count: ValueState<u64>,
    ever: ValueState<u64>,
}

impl KeyedProcessFunction for Streak {
    type Key = u64;
    type In = u64;
    type Out = (u64, u64, u64);
    type Side = NoSide;
    type State = Running;

    fn process(
        &mut self,
        state: &mut Running,
        n: u64,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        *state.count.get_or_default() += 1;
        *state.ever.get_or_default() += 1;
        let (count, ever) = (state.count.get().copied(), state.ever.get().copied());
        cx.emit((n, count.unwrap_or(0), ever.unwrap_or(0)));
        Ok(())
    }
}

#[pipeline]
fn streaks(numbers: Input<u64>, out: Output<(u64, u64, u64)>) {
    source(numbers).key_by(|n| *n).process(Streak).sink(out);
}

#[test]
fn state_with_a_time_to_live_vanishes_by_the_clock_and_across_a_restore() -> Result<(), Error> {
    for parallelism in [1, 3] {
        let mut test = Harness::new();
        let (numbers, out) = (test.input(), test.output());
        test.start(streaks(numbers.clone(), out.clone()))?;
        numbers.push(1);
        numbers.push(2);
        test.settle()?;
        test.advance(Duration::from_secs(9))?;
        numbers.push(1);
        test.settle()?;
        assert_eq!(out.take_sorted(), [(1, 1, 1), (1, 2, 2), (2, 1, 1)]);
        test.advance(Duration::from_secs(5))?;
        let before = test.snapshot()?;
        // The first key was used five seconds before, the second one fourteen.
        test.parallelism(parallelism).restore(&before, streaks(numbers.clone(), out.clone()))?;
        test.advance(Duration::from_secs(4))?;
        numbers.push(1);
        numbers.push(2);
        test.settle()?;
        assert_eq!(out.take_sorted(), [(1, 3, 3), (2, 1, 2)]);
        test.advance(Duration::from_secs(10))?;
        numbers.push(1);
        test.finish()?;
        assert_eq!(out.take_sorted(), [(1, 1, 4)]);
    }
    Ok(())
}
