//! Timers and state of a process function, against a naive evaluator that keeps everything in ordered maps.

use std::collections::{BTreeMap, BTreeSet};

use flow_macros::State;
use proptest::prelude::*;

use super::{
    KeyedContext, KeyedProcess, KeyedProcessFunction, ListState, TimeDomain, Timer, ValueState,
    keyed::KeyState,
};
use crate::{
    error::BoxError,
    state::{KeyGroups, Keyed, StatePort},
    time::{Clock, Timestamp, Watermark},
    window::{Turn, lent::WindowPort},
};

/// What a record asks for.
#[derive(Clone, Copy, Debug)]
enum Wish {
    Event(i64),
    NoEvent(i64),
    Clock(i64),
    NoClock(i64),
    Add(i64),
    Fail,
}

/// What was seen: of which key, at what time, by event time or not, and the sum of the key.
type Seen = (u8, i64, bool, i64);

struct Does;

#[derive(State)]
struct Kept {
    sum: ValueState<i64>,
    fired: ListState<i64>,
}

impl KeyedProcessFunction for Does {
    type Key = u8;
    type In = Wish;
    type Out = Seen;
    type Side = i64;
    type State = Kept;

    fn process(
        &mut self,
        state: &mut Kept,
        wish: Wish,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match wish {
            Wish::Event(time) => cx.register_event_time_timer(Timestamp::from_millis(time)),
            Wish::NoEvent(time) => cx.delete_event_time_timer(Timestamp::from_millis(time)),
            Wish::Clock(time) => cx.register_processing_time_timer(Timestamp::from_millis(time)),
            Wish::NoClock(time) => cx.delete_processing_time_timer(Timestamp::from_millis(time)),
            Wish::Add(n) => *state.sum.get_or_default() += n,
            Wish::Fail => {
                cx.emit_side(-1);
                return Err("asked to".into());
            }
        }
        Ok(())
    }

    fn on_timer(
        &mut self,
        state: &mut Kept,
        timer: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let (time, event) = (timer.time.as_millis(), timer.domain == TimeDomain::EventTime);
        cx.emit((*cx.key(), time, event, state.sum.get().copied().unwrap_or(0)));
        state.fired.push(time);
        // One that may have come already, and one that forgets the key.
        match time % 5 {
            1 => cx.register_event_time_timer(timer.time.plus_millis(3)),
            2 => {
                state.sum.clear();
                state.fired.clear();
            }
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Record(u8, Wish),
    Watermark(i64),
    Clock(i64),
    /// Goes on from a checkpoint, in so many subtasks.
    Restore(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let wish = prop_oneof![
        6 => (0i64..60).prop_map(Wish::Event),
        2 => (0i64..60).prop_map(Wish::NoEvent),
        4 => (0i64..60).prop_map(Wish::Clock),
        1 => (0i64..60).prop_map(Wish::NoClock),
        4 => (1i64..9).prop_map(Wish::Add),
    ];
    prop_oneof![
        12 => (0u8..4, wish).prop_map(|(key, wish)| Step::Record(key, wish)),
        4 => (0i64..60).prop_map(Step::Watermark),
        3 => (0i64..60).prop_map(Step::Clock),
        1 => (1u32..4).prop_map(Step::Restore),
    ]
}

/// The evaluator: all timers in order, and the sums.
#[derive(Default)]
struct Naive {
    event: BTreeSet<(i64, u8)>,
    clock: BTreeSet<(i64, u8)>,
    sums: BTreeMap<u8, i64>,
    watermark: Option<i64>,
    now: i64,
}

impl Naive {
    fn record(&mut self, key: u8, wish: Wish) {
        match wish {
            Wish::Event(time) => drop(self.event.insert((time, key))),
            Wish::NoEvent(time) => drop(self.event.remove(&(time, key))),
            Wish::Clock(time) => drop(self.clock.insert((time, key))),
            Wish::NoClock(time) => drop(self.clock.remove(&(time, key))),
            Wish::Add(n) => *self.sums.entry(key).or_insert(0) += n,
            Wish::Fail => {}
        }
    }

    fn due(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        loop {
            let event = self.event.first().filter(|(time, _)| self.watermark.is_some_and(|w| *time <= w));
            let clock = self.clock.first().filter(|(time, _)| *time <= self.now);
            let (time, key, by_event) = match (event.copied(), clock.copied()) {
                (Some((time, key)), _) => (time, key, true),
                (None, Some((time, key))) => (time, key, false),
                (None, None) => return seen,
            };
            match by_event {
                true => self.event.remove(&(time, key)),
                false => self.clock.remove(&(time, key)),
            };
            seen.push((key, time, by_event, self.sums.get(&key).copied().unwrap_or(0)));
            match time % 5 {
                1 => drop(self.event.insert((time + 3, key))),
                2 => drop(self.sums.remove(&key)),
                _ => {}
            }
        }
    }
}

/// A subtask.
struct Subtask {
    table: Keyed<u8, KeyState<Kept>>,
    process: KeyedProcess<Does>,
}

fn subtask(clock: &Clock) -> Subtask {
    let table = Keyed::empty();
    Subtask { process: KeyedProcess::new(Does, table.clone(), clock.clone(), true, None), table }
}

fn turn(process: &KeyedProcess<Does>, watermark: Option<i64>, clock: &Clock) -> Vec<Seen> {
    let watermark = watermark.map(|time| Watermark::new(Timestamp::from_millis(time)));
    let (mut turn, mut seen) = (Turn::new(watermark, clock.now()), Vec::new());
    let mut process = process.borrow_mut();
    while process.turn(&mut turn).expect("it does not fail") {
        seen.extend(process.emitted().map(|(_, seen)| seen));
    }
    seen
}

fn groups(parallelism: usize) -> KeyGroups {
    KeyGroups { max_parallelism: 128, parallelism: parallelism as u32 }
}

/// The subtasks after a checkpoint, at another parallelism.
fn restored(subtasks: &[Subtask], parallelism: u32, watermark: Option<i64>, clock: &Clock) -> Vec<Subtask> {
    let segments: Vec<_> = subtasks
        .iter()
        .filter_map(|subtask| {
            let snapshot = subtask.table.close(groups(subtasks.len()));
            subtask.table.collect(std::time::Instant::now() + std::time::Duration::from_secs(60));
            snapshot.map(|snapshot| (snapshot.encode)().expect("it can be written"))
        })
        .collect();
    let parallelism = parallelism as usize;
    let after = |number| {
        let new = subtask(clock);
        for segment in &segments {
            new.table.restore(segment, groups(parallelism), number).expect("it can be read");
        }
        if let Some(watermark) = watermark {
            new.process.restore(Watermark::new(Timestamp::from_millis(watermark)));
        }
        new
    };
    (0..parallelism).map(after).collect()
}

/// Of the same time, which key comes first depends on the subtask.
fn in_order(mut seen: Vec<Seen>) -> Vec<Seen> {
    seen.sort_by_key(|(key, _, event, _)| (*key, !event));
    seen
}

proptest! {
    #[test]
    fn timers_fire_as_a_naive_evaluator_says(steps in prop::collection::vec(step(), 0..80)) {
        let clock = Clock::manual(Timestamp::EPOCH);
        let (mut subtasks, mut naive) = (vec![subtask(&clock)], Naive::default());
        for step in steps {
            match step {
                Step::Record(key, wish) => {
                    let owner = groups(subtasks.len()).owner(groups(subtasks.len()).group(crate::state::hash(&key)));
                    subtasks[owner].process.borrow_mut().put(key, Timestamp::EPOCH, wish).expect("it does not fail");
                    naive.record(key, wish);
                }
                Step::Watermark(time) => naive.watermark = naive.watermark.max(Some(time)),
                Step::Clock(time) => {
                    let by = (time - naive.now).max(0);
                    naive.now += by;
                    clock.advance(std::time::Duration::from_millis(by as u64));
                }
                // A whole snapshot: what is restored has files of its own in the engine.
                Step::Restore(parallelism) => {
                    for subtask in &subtasks {
                        subtask.table.set_whole(true);
                    }
                    subtasks = restored(&subtasks, parallelism, naive.watermark, &clock);
                }
            }
            let seen: Vec<_> = subtasks
                .iter()
                .flat_map(|subtask| turn(&subtask.process, naive.watermark, &clock))
                .collect();
            for by_event in [true, false] {
                let times: Vec<_> = seen.iter().filter(|seen| seen.2 == by_event).collect();
                if subtasks.len() == 1 && by_event {
                    prop_assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{seen:?}");
                }
            }
            prop_assert_eq!(in_order(seen), in_order(naive.due()));
        }
        // Nothing is kept of a key of which there is nothing to remember.
        let kept: usize = subtasks.iter().map(|subtask| subtask.table.borrow_mut().hashed().count()).sum();
        let keys: BTreeSet<u8> = (0..4)
            .filter(|key| {
                naive.sums.contains_key(key)
                    || naive.event.iter().chain(&naive.clock).any(|(_, of)| of == key)
            })
            .collect();
        prop_assert!(kept >= keys.len());
    }
}

#[test]
fn what_fails_where_nothing_says_otherwise_is_an_error() {
    let clock = Clock::manual(Timestamp::EPOCH);
    let one = subtask(&clock);
    let mut process = one.process.borrow_mut();
    let error = process.put(1, Timestamp::EPOCH, Wish::Fail).expect_err("it fails");
    assert_eq!(error.to_string(), "asked to");
}

#[test]
fn at_the_end_all_timers_of_event_time_fire_and_none_of_the_clock() {
    let clock = Clock::manual(Timestamp::EPOCH);
    let one = subtask(&clock);
    for (key, wish) in
        [(1, Wish::Event(50)), (2, Wish::Event(10)), (1, Wish::Clock(70)), (3, Wish::Event(i64::MAX))]
    {
        one.process.borrow_mut().put(key, Timestamp::EPOCH, wish).expect("it does not fail");
    }
    let seen = turn(&one.process, Some(i64::MAX), &clock);
    assert_eq!(seen, [(2, 10, true, 0), (1, 50, true, 0), (3, i64::MAX, true, 0)]);
    assert_eq!(one.process.next_timer(), Some(Timestamp::from_millis(70)));
}

#[test]
fn what_the_beginning_of_time_asks_for_fires() {
    let clock = Clock::manual(Timestamp::EPOCH);
    let one = subtask(&clock);
    one.process.borrow_mut().put(1, Timestamp::EPOCH, Wish::Event(i64::MIN)).expect("it does not fail");
    assert_eq!(turn(&one.process, Some(0), &clock), [(1, i64::MIN + 1, true, 0)]);
    one.process.borrow_mut().put(1, Timestamp::EPOCH, Wish::Event(i64::MIN)).expect("it does not fail");
    one.process.borrow_mut().put(1, Timestamp::EPOCH, Wish::NoEvent(i64::MIN)).expect("it does not fail");
    assert_eq!(turn(&one.process, None, &clock), []);
}

/// Keeps what vanishes, and nothing else.
struct Short;

#[derive(State)]
struct Moment {
    #[state(ttl = "10ms")]
    value: ValueState<u64>,
}

impl KeyedProcessFunction for Short {
    type Key = u8;
    type In = u64;
    type Out = ();
    type Side = ();
    type State = Moment;

    fn process(
        &mut self,
        state: &mut Moment,
        n: u64,
        _: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        state.value.set(n);
        Ok(())
    }
}

#[test]
fn what_has_vanished_is_gone_from_the_table_though_nobody_touches_its_key() {
    let clock = Clock::manual(Timestamp::EPOCH);
    let table: Keyed<u8, KeyState<Moment>> = Keyed::empty();
    let process = KeyedProcess::new(Short, table.clone(), clock.clone(), false, None);
    let pass = |millis| {
        clock.advance(std::time::Duration::from_millis(millis));
        let mut turn = Turn::new(None, clock.now());
        assert!(!process.borrow_mut().turn(&mut turn).expect("it does not fail"));
        table.borrow_mut().hashed().count()
    };
    process.borrow_mut().put(1, Timestamp::EPOCH, 1).expect("it does not fail");
    assert_eq!((pass(6), process.next_timer()), (1, Some(Timestamp::from_millis(10))));
    // Written again: it is looked at when it would have gone, and later again.
    process.borrow_mut().put(1, Timestamp::EPOCH, 2).expect("it does not fail");
    assert_eq!(pass(4), 1);
    assert_eq!(process.next_timer(), Some(Timestamp::from_millis(16)));
    assert_eq!((pass(5), pass(1)), (1, 0));
    assert_eq!(process.next_timer(), None);
}
