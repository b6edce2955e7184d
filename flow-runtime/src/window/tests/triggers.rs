//! Triggers.

use super::{super::*, *};
use crate::window::trigger::{self, TriggerContext};

#[test]
fn case_17_a_purge_leaves_the_state_of_the_trigger_until_the_window_is_over() {
    /// Counts all records of a window, and purges at every second one.
    struct EverySecond;

    impl Trigger<i64, Window> for EverySecond {
        type State = u32;

        fn on_element(
            &self,
            _: &i64,
            _: Timestamp,
            window: &Window,
            cx: &mut TriggerContext<'_, u32>,
        ) -> TriggerResult {
            cx.register_event_timer(window.start + ms(8));
            *cx.state() += 1;
            match *cx.state() {
                1 => TriggerResult::Fire,
                2 => TriggerResult::Purge,
                3 => TriggerResult::FireAndPurge,
                _ => TriggerResult::Continue,
            }
        }

        fn on_event_time(&self, _: Timestamp, _: &Window, _: &mut TriggerContext<'_, u32>) -> TriggerResult {
            TriggerResult::Fire
        }

        fn on_merge(&self, _: &Window, _: Vec<u32>, _: &mut TriggerContext<'_, u32>) {}
    }

    let w = operator(windows(tumbling(ms(10))).trigger(EverySecond).aggregate(SUM));
    assert_eq!(w.put(0, 1), [(0, 10, 1)]);
    assert_eq!(w.put(0, 10), []);
    assert_eq!(w.put(0, 100), [(0, 10, 100)]);
    assert_eq!(w.put(0, 1000), [], "the fourth, in spite of two purges");
    assert_eq!(w.watermark_at(8), [(0, 10, 1000)], "the timer, too");
    assert_eq!(w.watermark_at(9), []);
    assert!(is_empty(&w));
    // A fire keeps what is held.
    let w = operator(windows(tumbling(ms(10))).trigger(trigger::count(2)).aggregate(SUM));
    let fired: Vec<_> = (0..4).flat_map(|_| w.put(0, 1)).collect();
    assert_eq!(fired, [(0, 10, 2), (0, 10, 4)]);
}

#[test]
fn case_18_a_trigger_takes_the_place_of_the_default() {
    let w = operator(windows(tumbling(ms(10))).trigger(trigger::count(2)).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.watermark_at(END), []);
    let w = operator(windows(sliding(ms(10), ms(5))).trigger(trigger::count(2)).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.put(6, 1), [(0, 10, 2)]);
    assert_eq!(w.watermark_at(END), []);
}

#[test]
fn case_19_the_global_window_never_fires_and_nothing_is_late_for_it() {
    let w = operator(windows(global()).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.watermark_at(END), []);
    assert_eq!(w.put(1, 1), []);
    let w = operator(windows(global()).trigger(trigger::count(1)).aggregate(SUM));
    w.watermark_at(END);
    assert_eq!(w.put(i64::MIN, 1), [(i64::MIN, END, 1)]);
    assert_eq!(w.put(END, 1), [(i64::MIN, END, 2)]);
}

#[test]
fn case_20_a_timer_of_a_purged_window_does_not_fire() {
    let trigger = trigger::purging(trigger::continuous_event_time(ms(3)));
    let w = operator(windows(tumbling(ms(10))).trigger(trigger).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.watermark_at(3), [(0, 10, 1)]);
    assert_eq!(w.watermark_at(8), []);
    w.put(8, 10);
    assert_eq!(w.watermark_at(END), [(0, 10, 10)]);
}

#[test]
fn a_continuous_trigger_fires_early_and_at_the_end() {
    let w = operator(windows(tumbling(ms(10))).trigger(trigger::continuous_event_time(ms(4))).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.watermark_at(3), []);
    assert_eq!(w.watermark_at(4), [(0, 10, 1)]);
    w.put(5, 10);
    assert_eq!(w.watermark_at(8), [(0, 10, 11)]);
    assert_eq!(w.watermark_at(9), [(0, 10, 11)]);
    assert!(is_empty(&w));
}

#[test]
fn a_processing_time_trigger_goes_by_the_clock() {
    let w = operator(
        windows(tumbling(ms(10)))
            .allowed_lateness(ms(1000))
            .trigger(trigger::processing_time())
            .aggregate(SUM),
    );
    w.put(1, 1);
    w.put(12, 1);
    assert_eq!(w.next_processing_timer(), Some(at(9)));
    assert_eq!(w.clock(8), []);
    assert_eq!(w.clock(9), [(0, 10, 1)]);
    assert_eq!(w.next_processing_timer(), Some(at(19)));
    assert_eq!(w.put(1, 1), []);
    assert_eq!(w.clock(15), [(0, 10, 2)], "the clock has passed its end");
    assert_eq!(w.watermark_at(500), []);
    assert_eq!(w.clock(30), [(10, 20, 1)]);
    assert_eq!(w.next_processing_timer(), None);
}

#[test]
fn a_delta_trigger_measures_from_the_record_of_the_last_firing() {
    let delta = trigger::delta(10.0, |last: &i64, now: &i64| (now - last) as f64);
    let w = operator(windows(global()).trigger(delta).aggregate(aggregate::max(aggregate::Itself)));
    let fired: Vec<_> =
        [0, 10, 11, 15, 21, 22].into_iter().flat_map(|n| w.put(0, n)).map(|row| row.2).collect();
    assert_eq!(fired, [11, 22]);
}
