//! Process functions and several outputs under all lints.

#![deny(warnings, clippy::all, missing_docs, unreachable_code, unused)]

use flow::{
    BoxError, KeyedProcessFunction, ListState, MapState, Split2, State, Text, Timer, ValueState,
    collection::range,
    file, pipeline,
    process::{KeyedContext, NoSide},
    time::Timestamp,
    watermark::monotonous,
};

/// What is kept.
#[derive(State)]
pub struct Kept<T> {
    /// With a type of the program's own.
    pub value: ValueState<T>,
    #[state(ttl = "1h", update = on_read_and_write, visibility = return_expired_if_not_cleaned_up)]
    r#type: ListState<u64>,
    inner: Inner,
}

#[derive(State)]
struct Inner {
    map: MapState<Text, Vec<u8>>,
}

/// Nothing.
#[derive(State)]
pub struct Empty;

struct Last<'a>(std::marker::PhantomData<fn(&'a ())>);

impl KeyedProcessFunction for Last<'static> {
    type Key = (Text, u64);
    type In = (Text, u64);
    type Out = (String, u64);
    type Side = NoSide;
    type State = Kept<u64>;

    fn process(
        &mut self,
        state: &mut Kept<u64>,
        (word, n): (Text, u64),
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        state.value.set(n);
        state.r#type.push(n);
        state.inner.map.insert(word, Vec::new());
        cx.register_event_time_timer(Timestamp::from_millis(n as i64));
        Ok(())
    }

    fn on_timer(
        &mut self,
        state: &mut Kept<u64>,
        _: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        cx.emit((cx.key().0.to_string(), state.value.take().unwrap_or(0)));
        Ok(())
    }
}

#[pipeline]
fn words(path: &str, limit: u64) {
    let lines =
        source(file::text(path)).watermarks(monotonous(), |line| Timestamp::from_millis(line.len() as i64));
    let (long, short) = lines.split(|line| {
        if line.len() as u64 > limit {
            Split2::First(line)
        } else {
            Split2::Second((line, line.len() as u64))
        }
    });
    long.sink(file::to_lines("long"));
    let (last, _) =
        short.key_by(|(line, n)| (*line, *n)).process(Last(std::marker::PhantomData)).on_error(skip);
    last.sink(file::to_tsv("last"));
}

#[pipeline]
fn dropped() {
    let (_, odd) =
        source(range(0..9)).split(|n| if n % 2 == 0 { Split2::First(n) } else { Split2::Second(n) });
    odd.sink(file::to_lines("odd"));
}

#[test]
fn compiles() {
    let _ = (words("in", 3), dropped(), Empty);
}
