//! Sessions, with a gap of 3000.

use super::{super::*, *};
use crate::window::{
    aggregate::{Itself, count, first},
    trigger,
};

#[test]
fn case_14_a_record_bridges_two_sessions() {
    let w = operator(windows(session(ms(3000))).aggregate(count()));
    [1000, 2000, 4500, 8500, 7000].into_iter().for_each(|time| assert_eq!(w.put(time, 1), []));
    let mut w = w.borrow_mut();
    w.advance(Watermark::new(at(11_498))).unwrap();
    assert!(rows(&mut w).is_empty());
    w.advance(Watermark::new(at(11_499))).unwrap();
    let fired = w.fired().next().unwrap();
    assert_eq!(fired.timestamp(), at(11_499));
    assert_eq!(row(&fired.window, fired.result), (1000, 11_500, 5));
}

#[test]
fn case_15_sessions_that_touch_merge() {
    let w = operator(windows(session(ms(3000))).aggregate(count()));
    [1000, 4000, 7001].into_iter().for_each(|time| assert_eq!(w.put(time, 1), []));
    assert_eq!(w.watermark_at(END), [(1000, 7000, 2), (7001, 10_001, 1)]);
    assert!(is_empty(&w));
}

#[test]
fn case_15_gaps_may_depend_on_the_record() {
    let w = operator(windows(session_with(|gap: &i64| ms(*gap as u64))).aggregate(count()));
    w.put(0, 10);
    w.put(100, 10);
    // A long one covers both, a short one within changes nothing.
    w.put(5, 200);
    w.put(50, 1);
    assert_eq!(w.watermark_at(END), [(0, 205, 4)]);
}

#[test]
fn case_15_a_merge_moves_the_state_of_the_trigger() {
    let w = operator(windows(session(ms(3000))).trigger(trigger::count(4)).aggregate(count()));
    w.put(0, 1);
    w.put(1000, 1);
    w.put(6000, 1);
    assert_eq!(w.put(3500, 1), [(0, 9000, 4)]);
    assert_eq!(w.watermark_at(END), []);
}

#[test]
fn case_15_a_merge_moves_timers() {
    let w = operator(windows(session(ms(3000))).trigger(trigger::processing_time()).aggregate(count()));
    w.put(0, 1);
    w.put(5000, 1);
    assert_eq!(w.next_processing_timer(), Some(at(2999)));
    w.put(2500, 1);
    assert_eq!(w.clock(7998), [], "the timers of the parts are gone");
    assert_eq!(w.clock(7999), [(0, 8000, 3)]);
    let continuous = trigger::continuous_event_time(ms(4000));
    let w = operator(windows(session(ms(3000))).trigger(continuous).aggregate(count()));
    w.put(0, 1);
    w.put(5000, 1);
    w.put(2500, 1);
    assert_eq!(w.watermark_at(4000), [(0, 8000, 3)]);
    assert_eq!(w.put(7000, 1), []);
    assert_eq!(w.watermark_at(9998), [(0, 10_000, 4)]);
    assert_eq!(w.watermark_at(9999), [(0, 10_000, 4)]);
}

#[test]
fn case_16_a_late_record_is_kept_when_its_session_is_not_over() {
    let w = operator(windows(session(ms(3000))).allowed_lateness(ms(10)).aggregate(count()));
    w.put(11_600, 1);
    assert_eq!(w.watermark_at(14_600), [(11_600, 14_600, 1)]);
    // The session's end has been passed already, so it fires at once; the next record prolongs it.
    assert_eq!(w.put(10_000, 1), [(10_000, 14_600, 2)]);
    assert_eq!(w.put(14_500, 1), []);
    assert_eq!(w.watermark_at(20_000), [(10_000, 17_500, 3)]);
    assert!(is_empty(&w));
}

#[test]
fn case_16_with_a_purging_trigger_it_is_dropped() {
    let trigger = trigger::purging(trigger::event_time());
    let w = operator(windows(session(ms(3000))).allowed_lateness(ms(10)).trigger(trigger).aggregate(count()));
    w.put(11_600, 1);
    assert_eq!(w.watermark_at(14_600), [(11_600, 14_600, 1)]);
    w.put_late(10_000, 1);
    assert_eq!(w.put(14_500, 1), []);
    assert_eq!(w.watermark_at(20_000), [(14_500, 17_500, 1)]);
    assert!(is_empty(&w));
}

#[test]
fn a_purged_session_that_is_not_over_goes_on() {
    let trigger = trigger::purging(trigger::count(2));
    let w = operator(windows(session(ms(3000))).trigger(trigger).aggregate(count()));
    w.put(0, 1);
    assert_eq!(w.put(1000, 1), [(0, 4000, 2)]);
    w.put(2000, 1);
    assert_eq!(w.put(3000, 1), [(0, 6000, 2)]);
}

#[test]
fn a_late_record_leaves_no_trace() {
    let w = operator(windows(session(ms(3000))).aggregate(count()));
    w.watermark_at(10_000);
    w.put_late(1, 1);
    assert!(is_empty(&w));
}

#[test]
fn what_is_first_goes_by_event_time() {
    let w = operator(windows(session(ms(3000))).aggregate(first(Itself)));
    [(5000, 3), (1000, 1), (3000, 2)].into_iter().for_each(|(time, n)| assert_eq!(w.put(time, n), []));
    assert_eq!(w.watermark_at(END), [(1000, 8000, 1)]);
}
