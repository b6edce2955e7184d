use std::time::Duration;

use proptest::prelude::*;

use crate::checkpoint::{CheckpointId, Coordinator, Decision, Timing};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn id(n: u64) -> CheckpointId {
    CheckpointId(n)
}

fn trigger(n: u64) -> Decision {
    Decision::Trigger(id(n))
}

fn until(n: u64) -> Decision {
    Decision::WaitUntil(ms(n))
}

/// Every 100 ms, with a pause of 30 ms, one at a time; two may fail.
fn timing() -> Timing {
    Timing {
        interval: Some(ms(100)),
        min_pause: ms(30),
        timeout: Some(ms(1000)),
        max_concurrent: 1,
        tolerable_failures: 2,
    }
}

/// After checkpoint 5, from time 0.
fn coordinator() -> Coordinator {
    Coordinator::new(timing(), id(5), ms(0))
}

fn in_flight(c: &Coordinator) -> Vec<u64> {
    c.in_flight().map(|id| id.0).collect()
}

#[test]
fn one_follows_the_other_by_the_interval() {
    let mut c = coordinator();
    assert_eq!(c.on_timer(ms(0)), until(100));
    assert_eq!(c.on_timer(ms(99)), until(100));
    assert_eq!(c.on_timer(ms(100)), trigger(6));
    assert_eq!(c.on_completed(id(6), ms(110)), until(200));
    assert_eq!(c.on_timer(ms(200)), trigger(7));
}

#[test]
fn never_two_at_once() {
    let mut c = coordinator();
    assert_eq!(c.on_timer(ms(100)), trigger(6));
    assert_eq!(in_flight(&c), [6]);
    assert_eq!(c.on_timer(ms(500)), until(1100));
    assert_eq!(c.on_request(ms(600)), until(1100));
}

#[test]
fn after_a_slow_one_comes_the_pause() {
    let mut c = coordinator();
    assert_eq!(c.on_timer(ms(100)), trigger(6));
    assert_eq!(c.on_completed(id(6), ms(190)), until(220));
    assert_eq!(c.on_timer(ms(220)), trigger(7));
    assert_eq!(c.on_failed(id(7), ms(900)), until(930));
    assert_eq!(c.on_timer(ms(930)), trigger(8));
}

#[test]
fn an_overdue_one_is_named_and_its_number_not_used_again() {
    let mut c = coordinator();
    assert_eq!(c.on_timer(ms(100)), trigger(6));
    assert_eq!(c.overdue(ms(1099)), None);
    assert_eq!(c.overdue(ms(1100)), Some(id(6)));
    assert_eq!(c.on_timer(ms(1100)), Decision::Wait);
    assert_eq!(c.on_failed(id(6), ms(1100)), until(1130));
    // Its completion comes late, and is no news of the next.
    assert_eq!(c.on_timer(ms(1130)), trigger(7));
    let _ = c.on_completed(id(6), ms(1140));
    assert_eq!(in_flight(&c), [7]);
}

#[test]
fn the_final_one_is_the_last() {
    let mut c = coordinator();
    assert_eq!(c.on_timer(ms(100)), trigger(6));
    assert_eq!(c.on_final(ms(110)), until(1100));
    assert_eq!(c.on_completed(id(6), ms(120)), trigger(7), "at once, without a pause");
    assert!(c.is_final(id(7)) && !c.is_final(id(6)));
    assert_eq!(c.on_completed(id(7), ms(130)), Decision::Wait);
    assert_eq!(c.on_request(ms(140)), Decision::Wait);
    assert_eq!(c.on_final(ms(10_000)), Decision::Wait);

    assert_eq!(coordinator().on_final(ms(1)), trigger(6));
    let mut c = coordinator();
    c.on_cancel();
    assert_eq!(c.on_timer(ms(100)), Decision::Wait);
    assert_eq!(c.on_final(ms(100)), Decision::Wait);
}

#[test]
fn one_that_is_asked_for_does_not_wait_for_its_time() {
    let mut c = coordinator();
    assert_eq!(c.on_request(ms(10)), trigger(6));
    let _ = c.on_request(ms(11));
    assert_eq!(c.on_completed(id(6), ms(12)), trigger(7), "asked for while one was in flight");
    assert_eq!(c.on_completed(id(7), ms(13)), until(112));
}

#[test]
fn without_an_interval_only_the_others() {
    let timing = Timing { interval: None, timeout: None, ..timing() };
    let mut c = Coordinator::new(timing, id(0), ms(0));
    assert_eq!(c.on_timer(ms(1_000_000)), Decision::Wait);
    assert_eq!(c.on_request(ms(1_000_000)), trigger(1));
    assert_eq!(c.on_timer(Duration::MAX), Decision::Wait);
    assert_eq!(c.on_completed(id(1), Duration::MAX), Decision::Wait);
    assert_eq!(c.on_final(Duration::MAX), trigger(2));
}

#[test]
fn so_many_may_fail_in_a_row() {
    let mut c = coordinator();
    assert_eq!(c.on_timer(ms(100)), trigger(6));
    assert_eq!(c.on_failed(id(6), ms(100)), until(200));
    assert_eq!(c.on_failed(id(6), ms(110)), until(200), "counted once");
    assert_eq!(c.on_timer(ms(200)), trigger(7));
    assert_eq!(c.on_failed(id(7), ms(200)), until(300));
    assert_eq!(c.failures(), 2);
    assert_eq!(c.on_timer(ms(300)), trigger(8));
    assert_eq!(c.on_completed(id(8), ms(300)), until(400));
    assert_eq!(c.failures(), 0, "a complete one ends the row");
    for (n, at) in [(9, 400), (10, 500)] {
        assert_eq!(c.on_timer(ms(at)), trigger(n));
        assert_eq!(c.on_failed(id(n), ms(at)), until(at + 100));
    }
    assert_eq!(c.on_timer(ms(600)), trigger(11));
    assert_eq!(c.on_failed(id(11), ms(600)), Decision::GiveUp(id(11)));
    assert_eq!(c.on_timer(ms(1000)), Decision::Wait);
}

#[test]
fn the_final_one_must_not_fail() {
    let mut c = coordinator();
    assert_eq!(c.on_final(ms(10)), trigger(6));
    assert_eq!(c.on_failed(id(6), ms(20)), Decision::GiveUp(id(6)));
}

#[test]
fn several_at_once_up_to_the_limit() {
    let timing = Timing { max_concurrent: 2, min_pause: ms(0), ..timing() };
    let mut c = Coordinator::new(timing, id(5), ms(0));
    assert_eq!(c.on_timer(ms(100)), trigger(6));
    assert_eq!(c.on_timer(ms(100)), until(200), "the next comes before the deadline of the first");
    assert_eq!(c.on_timer(ms(200)), trigger(7));
    assert_eq!(c.on_timer(ms(300)), until(1100), "there is no room for a third");
    assert_eq!(in_flight(&c), [6, 7]);
    assert_eq!(c.overdue(ms(1250)), Some(id(6)), "the oldest first");
    assert_eq!(c.on_failed(id(6), ms(1250)), trigger(8));
    assert_eq!(c.overdue(ms(1250)), Some(id(7)));
    assert_eq!(c.on_final(ms(1260)), until(2250), "the final one waits for room as well");
    assert_eq!(c.on_failed(id(7), ms(1260)), trigger(9));
    assert_eq!(in_flight(&c), [8, 9]);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Timer,
    /// Of the newest one, or of one this far before it.
    Completed(u64),
    Failed(u64),
    Request,
    Final,
    Cancel,
}

fn event() -> impl Strategy<Value = Event> {
    let other = prop_oneof![3 => Just(0u64), 2 => 1u64..4];
    prop_oneof![
        8 => Just(Event::Timer),
        4 => other.clone().prop_map(Event::Completed),
        2 => other.prop_map(Event::Failed),
        1 => Just(Event::Request),
        1 => Just(Event::Final),
        1 => Just(Event::Cancel),
    ]
}

/// What a careful observer knows of a coordinator.
struct Model {
    timing: Timing,
    now: u64,
    newest: u64,
    /// Number and time of the trigger.
    in_flight: Vec<(u64, u64)>,
    triggered: u64,
    ended: Option<u64>,
    failures: u32,
    asked: bool,
    ending: bool,
    last: Option<u64>,
    over: bool,
}

impl Model {
    /// Whether the checkpoint was in flight.
    fn ends(&mut self, id: u64) -> bool {
        let before = self.in_flight.len();
        self.in_flight.retain(|(other, _)| *other != id);
        let ended = self.in_flight.len() < before;
        if ended {
            self.ended = Some(self.now);
        }
        ended
    }

    fn late(&self) -> Option<u64> {
        let timeout = self.timing.timeout?.as_millis() as u64;
        self.in_flight.iter().find(|(_, since)| self.now >= since + timeout).map(|(id, _)| *id)
    }
}

proptest! {
    #[test]
    fn whatever_happens(
        interval in proptest::option::of(0u64..50),
        pause in 0u64..50,
        timeout in proptest::option::of(0u64..50),
        max_concurrent in 1usize..4,
        tolerable_failures in 0u32..4,
        last in 0u64..100,
        events in proptest::collection::vec((event(), 0u64..40), 0..80),
    ) {
        let timing = Timing {
            interval: interval.map(ms),
            min_pause: ms(pause),
            timeout: timeout.map(ms),
            max_concurrent,
            tolerable_failures,
        };
        let mut c = Coordinator::new(timing, id(last), ms(0));
        let mut m = Model {
            timing, now: 0, newest: last, in_flight: Vec::new(), triggered: 0, ended: None, failures: 0,
            asked: false, ending: false, last: None, over: false,
        };
        for (event, wait) in events {
            m.now += wait;
            let at = ms(m.now);
            let mut too_many = None;
            let decision = match event {
                Event::Timer => c.on_timer(at),
                Event::Completed(off) => {
                    let of = m.newest.wrapping_sub(off);
                    if m.ends(of) {
                        m.failures = 0;
                    }
                    c.on_completed(id(of), at)
                }
                Event::Failed(off) => {
                    let of = m.newest.wrapping_sub(off);
                    if m.ends(of) {
                        m.failures += 1;
                        let final_one = m.last == Some(of) && !m.over;
                        too_many = (m.failures > tolerable_failures || final_one).then_some(of);
                    }
                    c.on_failed(id(of), at)
                }
                Event::Request => {
                    m.asked = true;
                    c.on_request(at)
                }
                Event::Final => {
                    m.ending = true;
                    c.on_final(at)
                }
                Event::Cancel => {
                    m.over = true;
                    c.on_cancel();
                    continue;
                }
            };
            match decision {
                Decision::Trigger(next) => {
                    prop_assert_eq!(next.0, m.newest + 1, "numbers grow by one");
                    prop_assert!(m.in_flight.len() < max_concurrent, "not too many at a time");
                    prop_assert!(!m.over && m.last.is_none(), "none after the final one");
                    if !m.asked && !m.ending {
                        prop_assert!(m.ended.is_none_or(|ended| m.now >= ended + pause), "the pause is kept");
                        prop_assert!(m.now >= m.triggered + interval.unwrap(), "the interval is kept");
                    }
                    m.newest = next.0;
                    m.in_flight.push((next.0, m.now));
                    (m.triggered, m.asked) = (m.now, false);
                    if m.ending {
                        m.last = Some(next.0);
                    }
                    prop_assert_eq!(c.is_final(next), m.ending);
                }
                Decision::WaitUntil(then) => prop_assert!(then > at, "a wait ends later than now"),
                Decision::Wait => {
                    let room = m.in_flight.len() < max_concurrent;
                    prop_assert!(m.over || m.last.is_some() || !room || interval.is_none());
                }
                Decision::GiveUp(of) => {
                    prop_assert_eq!(too_many, Some(of.0), "only when too many have failed");
                    m.over = true;
                }
            }
            prop_assert!(too_many.is_none() || decision == Decision::GiveUp(id(too_many.unwrap())));
            prop_assert_eq!(c.failures(), m.failures);
            prop_assert_eq!(in_flight(&c), m.in_flight.iter().map(|(id, _)| *id).collect::<Vec<_>>());
            prop_assert_eq!(c.overdue(at).map(|id| id.0), m.late());
        }
    }
}
