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

/// Every 100 ms, with a pause of 30 ms, after checkpoint 5, from time 0.
fn coordinator() -> Coordinator {
    let timing = Timing { interval: Some(ms(100)), min_pause: ms(30), timeout: Some(ms(1000)) };
    Coordinator::new(timing, id(5), ms(0))
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
    assert_eq!(c.in_flight(), Some(id(6)));
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
    assert_eq!(c.in_flight(), Some(id(7)));
}

#[test]
fn the_final_one_is_the_last() {
    let mut c = coordinator();
    assert_eq!(c.on_timer(ms(100)), trigger(6));
    assert_eq!(c.on_final(ms(110)), until(1100));
    assert_eq!(c.on_completed(id(6), ms(120)), trigger(7), "at once, without a pause");
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
    let timing = Timing { interval: None, min_pause: ms(30), timeout: None };
    let mut c = Coordinator::new(timing, id(0), ms(0));
    assert_eq!(c.on_timer(ms(1_000_000)), Decision::Wait);
    assert_eq!(c.on_request(ms(1_000_000)), trigger(1));
    assert_eq!(c.on_timer(Duration::MAX), Decision::Wait);
    assert_eq!(c.on_completed(id(1), Duration::MAX), Decision::Wait);
    assert_eq!(c.on_final(Duration::MAX), trigger(2));
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Timer,
    /// Of the one in flight, or of one this far from it.
    Completed(u64),
    Failed(u64),
    Request,
    Final,
    Cancel,
}

fn event() -> impl Strategy<Value = Event> {
    let other = prop_oneof![3 => Just(0u64), 1 => 1u64..3];
    prop_oneof![
        8 => Just(Event::Timer),
        4 => other.clone().prop_map(Event::Completed),
        2 => other.prop_map(Event::Failed),
        1 => Just(Event::Request),
        1 => Just(Event::Final),
        1 => Just(Event::Cancel),
    ]
}

proptest! {
    #[test]
    fn whatever_happens(
        interval in proptest::option::of(0u64..50),
        pause in 0u64..50,
        timeout in proptest::option::of(0u64..50),
        last in 0u64..100,
        events in proptest::collection::vec((event(), 0u64..40), 0..60),
    ) {
        let timing = Timing { interval: interval.map(ms), min_pause: ms(pause), timeout: timeout.map(ms) };
        let mut c = Coordinator::new(timing, id(last), ms(0));
        let (mut now, mut newest, mut in_flight) = (0, last, None);
        let (mut triggered, mut ended) = (0, None::<u64>);
        let (mut asked, mut ending, mut over) = (false, false, false);
        for (event, wait) in events {
            now += wait;
            let at = ms(now);
            let decision = match event {
                Event::Timer => c.on_timer(at),
                Event::Completed(off) | Event::Failed(off) => {
                    let of = newest.wrapping_sub(off);
                    if in_flight == Some(of) {
                        (in_flight, ended) = (None, Some(now));
                    }
                    match event {
                        Event::Completed(_) => c.on_completed(id(of), at),
                        _ => c.on_failed(id(of), at),
                    }
                }
                Event::Request => {
                    asked = true;
                    c.on_request(at)
                }
                Event::Final => {
                    ending = true;
                    c.on_final(at)
                }
                Event::Cancel => {
                    over = true;
                    c.on_cancel();
                    continue;
                }
            };
            match decision {
                Decision::Trigger(next) => {
                    prop_assert_eq!(next.0, newest + 1, "numbers grow by one");
                    prop_assert_eq!(in_flight, None, "one at a time");
                    prop_assert!(!over, "none after the final one");
                    if !asked && !ending {
                        prop_assert!(ended.is_none_or(|ended| now >= ended + pause), "the pause is kept");
                        prop_assert!(now >= triggered + interval.unwrap(), "the interval is kept");
                    }
                    (newest, in_flight, triggered, asked) = (next.0, Some(next.0), now, false);
                    over = ending;
                }
                Decision::WaitUntil(then) => prop_assert!(then > at, "a wait ends later than now"),
                Decision::Wait => prop_assert!(in_flight.is_some() || over || interval.is_none()),
            }
            prop_assert_eq!(c.in_flight().map(|id| id.0), in_flight);
            let late = in_flight.is_some() && timeout.is_some_and(|timeout| now >= triggered + timeout);
            prop_assert_eq!(c.overdue(at).is_some(), late);
        }
    }
}
