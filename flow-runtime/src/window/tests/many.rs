//! Keys with very many open windows, as a source has whose splits are far apart in time: what is done for one record or
//! for one firing must not grow with them. Steps are counted, not seconds.

use std::{cell::Cell, cmp::Ordering, iter};

use serde::{Deserialize, Serialize};

use super::{super::*, *};
use crate::window::{
    aggregate::count,
    evict::NoEvictor,
    trigger::{EventTime, SlidingEventTime, TilingEventTime, event_time, processing_time},
};

thread_local! {
    /// How often a window was looked at.
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

fn look() {
    LOOKS.set(LOOKS.get() + 1);
}

/// A window that counts who looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Counted(Window);

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        look();
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Bounds for Counted {
    fn max_timestamp(&self) -> Timestamp {
        look();
        self.0.max_timestamp()
    }
    fn span(&self) -> Window {
        look();
        self.0
    }
    fn spanning(span: Window) -> Self {
        Counted(span)
    }
}

/// Windows of 10 ms, or, if they merge, sessions with a gap of 5 ms.
struct Every<const MERGING: bool>;

impl<const MERGING: bool> Windowing for Every<MERGING> {
    type Window = Counted;
    type Trigger = EventTime;
    type Evictor = NoEvictor;
    const MERGING: bool = MERGING;
    fn trigger(&self) -> EventTime {
        EventTime
    }
    fn evictor(&self) -> NoEvictor {
        NoEvictor
    }
}

impl<const MERGING: bool> Assigner<i64> for Every<MERGING> {
    type Windows = iter::Once<Counted>;
    fn assign(&self, _: &i64, time: Timestamp) -> Self::Windows {
        let (time, size) = (time.as_millis(), if MERGING { 5 } else { 10 });
        let start = if MERGING { time } else { time.div_euclid(size) * size };
        iter::once(Counted(Window::of_millis(start, start + size)))
    }
}

/// Windows of 10 ms, each of which fires by itself.
struct Tiles;

impl Windowing for Tiles {
    type Window = Counted;
    type Trigger = TilingEventTime;
    type Evictor = NoEvictor;
    fn trigger(&self) -> TilingEventTime {
        TilingEventTime
    }
    fn evictor(&self) -> NoEvictor {
        NoEvictor
    }
}

impl Assigner<i64> for Tiles {
    type Windows = iter::Once<Counted>;
    fn assign(&self, record: &i64, time: Timestamp) -> Self::Windows {
        Every::<false>.assign(record, time)
    }
}

/// Windows of 20 ms each 10 ms, in slices.
struct InSlices;

impl Windowing for InSlices {
    type Window = Counted;
    type Trigger = SlidingEventTime;
    type Evictor = NoEvictor;
    fn trigger(&self) -> SlidingEventTime {
        SlidingEventTime
    }
    fn evictor(&self) -> NoEvictor {
        NoEvictor
    }
    fn slices(&self) -> Option<assign::Slices> {
        sliding(ms(20), ms(10)).slices()
    }
}

impl Assigner<i64> for InSlices {
    type Windows = iter::Empty<Counted>;
    fn assign(&self, _: &i64, _: Timestamp) -> Self::Windows {
        iter::empty()
    }
}

const KEYS: u32 = 5;
const WINDOWS: i64 = 2000;

/// Opens all windows of all keys, one half in the order of time and the other against it, puts a second record into each
/// in between, and lets them fire one after the other. Returns how many looks at windows that took for each.
fn looks<S: Definition<u32, i64, Output = u64>>(spec: S, by_clock: bool) -> u64 {
    let w = operator(spec);
    LOOKS.set(0);
    for n in 0..WINDOWS / 2 {
        for window in [n, WINDOWS - 1 - n] {
            for key in 0..KEYS {
                let w = &mut w.borrow_mut();
                for time in [window * 10 + 1, window * 10 + 2] {
                    assert_eq!(w.add(&key, at(time), 1).unwrap(), None);
                }
                // In the middle of all that are open.
                let time = if n == 0 { window * 10 + 1 } else { n / 2 * 10 + 1 };
                assert_eq!(w.add(&key, at(time), 0).unwrap(), None);
            }
        }
    }
    let mut fired = 0;
    for n in 0..WINDOWS {
        let time = at(n * 10 + 9);
        let w = &mut w.borrow_mut();
        if by_clock {
            w.advance_processing_time(time).unwrap();
        }
        w.advance(Watermark::new(time)).unwrap();
        let results: Vec<u64> = w.fired().map(|fired| fired.result).collect();
        assert!(results.iter().all(|records| *records >= 2), "all that came is in it");
        fired += results.len() as i64;
    }
    assert!(fired >= WINDOWS * i64::from(KEYS));
    w.watermark_at(END);
    assert!(is_empty(&w));
    LOOKS.get() / (WINDOWS as u64 * u64::from(KEYS))
}

/// To find one of 2000 by bisection takes 11 steps, and each window is found about ten times.
const BOUND: u64 = 300;

#[test]
fn windows_of_one_key_are_not_searched_one_by_one() {
    let tumbling = || windows(Every::<false>);
    let late = || tumbling().allowed_lateness(ms(500));
    for looks in [
        looks(windows(Tiles).aggregate(count()), false),
        looks(windows(Tiles).allowed_lateness(ms(500)).aggregate(count()), false),
        looks(tumbling().aggregate(count()), false),
        looks(late().aggregate(count()), false),
        looks(tumbling().trigger(event_time()).aggregate(count()), false),
        looks(late().trigger(event_time()).aggregate(count()), false),
        looks(windows(InSlices).aggregate(count()), false),
        looks(windows(InSlices).allowed_lateness(ms(500)).aggregate(count()), false),
        looks(tumbling().trigger(processing_time()).aggregate(count()), true),
    ] {
        assert!(looks < BOUND, "{looks}");
    }
}

#[test]
fn sessions_of_one_key_are_not_searched_one_by_one() {
    let sessions = || windows(Every::<true>);
    let late = || sessions().allowed_lateness(ms(500));
    for looks in [
        looks(sessions().aggregate(count()), false),
        looks(late().aggregate(count()), false),
        looks(sessions().trigger(event_time()).aggregate(count()), false),
        looks(late().trigger(event_time()).aggregate(count()), false),
    ] {
        assert!(looks < BOUND, "{looks}");
    }
}

/// Also in tables that are nearly full, where an entry may be far from where its hash says.
#[test]
fn each_of_many_keys_fires_by_its_own_timer() {
    for keys in [7_000u32, 14_000, 25_000, 28_000] {
        let w = operator(windows(tumbling(ms(10))).aggregate(count()));
        for key in 0..keys {
            w.borrow_mut().add(&key, at(1), 1).unwrap();
        }
        assert_eq!(w.watermark_at(9).len(), keys as usize);
        assert!(is_empty(&w));
    }
}
