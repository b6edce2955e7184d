//! Windows, timers and a join of numbers whose event time they are themselves: what comes out is in
//! `results.rs`.

use flow::{
    BoxError, KeyedProcessFunction, MapState, State, Timer, collection, file, pipeline,
    process::{KeyedContext, NoSide},
    time::Timestamp,
    watermark::monotonous,
    window::tumbling,
};

use super::{
    Args,
    results::{JOINED, KEYS, TIMER, WINDOW, counted, pair},
};

fn time(n: u64) -> Timestamp {
    Timestamp::from_millis(n as i64)
}

/// How many numbers of a key there are between two multiples of `TIMER`, told by the timer at the end.
struct Counts;

#[derive(State)]
struct Open {
    counts: MapState<Timestamp, u64>,
}

impl KeyedProcessFunction for Counts {
    type Key = u64;
    type In = u64;
    type Out = i64;
    type Side = NoSide;
    type State = Open;

    fn process(&mut self, open: &mut Open, n: u64, cx: &mut KeyedContext<'_, Self>) -> Result<(), BoxError> {
        let end = time((n / TIMER + 1) * TIMER - 1);
        *open.counts.get_or_insert_with(end, || 0) += 1;
        cx.register_event_time_timer(end);
        Ok(())
    }

    fn on_timer(
        &mut self,
        open: &mut Open,
        timer: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let count = open.counts.remove(&timer.time).ok_or("a timer whose numbers are gone")?;
        cx.emit(counted(2, *cx.key(), timer.time.as_millis() as u64 / TIMER, count));
        Ok(())
    }
}

#[pipeline]
pub(crate) fn event_time(args: &Args) {
    let numbers = source(collection::generate(args.rate, |n| n).splits(4).take(args.records))
        .watermarks(monotonous(), |n| time(*n));
    let others = source(collection::generate(args.rate, |n| n).splits(3).take(args.records))
        .watermarks(monotonous(), |n| time(*n));
    let by_key = numbers.key_by(|n| n % KEYS);
    let windows = by_key
        .window(tumbling("500ms"))
        .count()
        .with(|key, window, count| counted(1, key, window.start.as_millis() as u64 / WINDOW, count));
    let timers = by_key.process(Counts);
    let pairs = numbers
        .filter(|n| *n % JOINED == 0)
        .key_by(|n| n % KEYS)
        .interval_join(others.key_by(|n| n % KEYS))
        .between("-101ms", "101ms")
        .with(|_, n, neighbour| pair(*n, *neighbour));
    windows.union(timers, pairs).map(|n| n.to_string()).sink(file::to_lines(&args.target));
}
