//! Boundaries, lateness, counts and the end of the input.

use super::{super::*, *};
use crate::window::{aggregate::count, trigger};

fn windows_of<A: Assigner<()>>(assigner: &A, millis: i64) -> Vec<(i64, i64)> {
    let spans = assigner.assign(&(), at(millis)).map(|window| window.span());
    spans.map(|Window { start, end }| (start.as_millis(), end.as_millis())).collect()
}

#[test]
fn case_1_a_window_fires_when_the_watermark_reaches_its_last_millisecond() {
    let tumbling = tumbling(ms(5000));
    assert_eq!(windows_of(&tumbling, 4999), [(0, 5000)]);
    assert_eq!(windows_of(&tumbling, 5000), [(5000, 10_000)]);
    let w = operator(windows(tumbling).aggregate(SUM));
    w.put(4999, 1);
    w.put(5000, 10);
    assert_eq!(w.watermark_at(4998), []);
    assert_eq!(w.watermark_at(4999), [(0, 5000, 1)]);
    assert_eq!(w.watermark_at(9998), []);
    assert_eq!(w.watermark_at(9999), [(5000, 10_000, 10)]);
    assert!(is_empty(&w));
}

#[test]
fn case_2_a_result_carries_the_last_millisecond_so_that_chained_windows_line_up() {
    let first = operator(windows(tumbling(ms(5000))).aggregate(SUM));
    let second = operator(windows(tumbling(ms(5000))).aggregate(count()));
    first.put(1, 1);
    first.put(4999, 1);
    let mut first = first.borrow_mut();
    first.advance(Watermark::new(at(4999))).unwrap();
    for fired in first.fired() {
        assert_eq!(fired.timestamp(), at(4999));
        assert_eq!(second.put(fired.timestamp().as_millis(), fired.result), []);
    }
    assert_eq!(second.watermark_at(4999), [(0, 5000, 1)]);
}

#[test]
fn case_3_bounded_out_of_orderness_and_all_results_before_the_watermark_goes_on() {
    let watermark = Watermark::bounded(at(20_000), ms(5000));
    assert_eq!(watermark, Watermark::new(at(14_999)));
    let w = operator(windows(tumbling(ms(5000))).aggregate(SUM));
    [1, 5001, 10_001, 15_001].into_iter().for_each(|time| assert_eq!(w.put(time, 1), []));
    let mut w = w.borrow_mut();
    w.advance(watermark).unwrap();
    assert_eq!(rows(&mut w), [(0, 5000, 1), (5000, 10_000, 1), (10_000, 15_000, 1)]);
}

#[test]
fn results_of_a_watermark_can_be_taken_in_pieces() {
    let w = operator(windows(tumbling(ms(10))).aggregate(SUM));
    let mut w = w.borrow_mut();
    for key in 0..100u32 {
        w.add(&key, at(i64::from(key % 3) * 10), 1).unwrap();
    }
    let mut all = Vec::new();
    while w.advance_some(Watermark::MAX, 7).unwrap() {
        let some = rows(&mut w);
        assert_eq!(some.len(), 7);
        all.extend(some);
    }
    all.extend(rows(&mut w));
    assert_eq!(all.len(), 100);
    assert!(all.is_sorted());
}

#[test]
fn case_4_times_before_the_epoch_round_down() {
    assert_eq!(windows_of(&tumbling(ms(7)).offset(ms(3)), 1), [(-4, 3)]);
    assert_eq!(windows_of(&tumbling(ms(7)).offset(crate::time::Offset::back(ms(2))), -2), [(-2, 5)]);
    assert_eq!(windows_of(&tumbling(ms(5)), -1), [(-5, 0)]);
    assert_eq!(windows_of(&tumbling(ms(5)), -5), [(-5, 0)]);
}

const DAY: Tumbling = const { Tumbling::of_millis(86_400_000, -8 * 3_600_000) };

#[test]
fn case_5_an_offset_is_smaller_than_the_window() {
    assert_eq!(windows_of(&DAY, 1_470_902_048_450), [(1_470_844_800_000, 1_470_931_200_000)]);
    let refused =
        |spec: Result<Windows<u32, i64, _>, crate::error::BoxError>| spec.err().unwrap().to_string();
    let of = |offset| Windows::new(windows(tumbling(ms(10)).offset(offset)).aggregate(SUM), Keyed::empty());
    for offset in [10, -10, 11] {
        let error = refused(of(Offset::from_millis(offset)));
        assert!(error.contains("must be smaller than the 10 ms"), "{error}");
    }
    for offset in [9, -9] {
        assert!(of(Offset::from_millis(offset)).is_ok());
    }
    let zero = windows(tumbling(Duration::ZERO)).aggregate(SUM);
    let error = Windows::<u32, i64, _>::new(zero, Keyed::empty()).err().unwrap().to_string();
    assert!(error.contains("at least one millisecond"), "{error}");
}

use crate::time::Offset;

#[test]
fn case_6_an_offset_shifts_the_time_of_firing() {
    let w = operator(windows(tumbling(ms(1000)).offset(ms(300))).aggregate(SUM));
    w.put(1299, 1);
    w.put(1300, 10);
    assert_eq!(w.watermark_at(1298), []);
    assert_eq!(w.watermark_at(1299), [(300, 1300, 1)]);
    assert_eq!(w.watermark_at(2298), []);
    assert_eq!(w.watermark_at(2299), [(1300, 2300, 10)]);
    // Slices shift alike.
    let w = operator(windows(sliding(ms(1000), ms(500)).offset(ms(300))).aggregate(SUM));
    w.put(1299, 1);
    assert_eq!(w.watermark_at(1298), []);
    assert_eq!(w.watermark_at(1299), [(300, 1300, 1)]);
    assert_eq!(w.watermark_at(1799), [(800, 1800, 1)]);
}

#[test]
fn case_7_a_slide_need_not_divide_the_size_and_may_leave_gaps() {
    assert_eq!(windows_of(&sliding(ms(10), ms(4)), 9), [(8, 18), (4, 14), (0, 10)]);
    assert_eq!(windows_of(&sliding(ms(10), ms(4)), 10), [(8, 18), (4, 14)]);
    assert_eq!(windows_of(&sliding(ms(5), ms(8)), 4), [(0, 5)]);
    assert_eq!(windows_of(&sliding(ms(5), ms(8)), 5), []);
    // In slices and in whole windows.
    let sliced = operator(windows(sliding(ms(5), ms(8))).aggregate(SUM));
    let whole = operator(windows(sliding(ms(5), ms(8))).process(|_, _, records| [records.sum::<i64>()]));
    for w in [&sliced as &dyn Drive<i64>, &whole] {
        [(4, 1), (5, 2), (7, 4), (8, 8)].into_iter().for_each(|(time, n)| assert_eq!(w.put(time, n), []));
        assert_eq!(w.watermark_at(END), [(0, 5, 1), (8, 13, 8)]);
    }
    assert_eq!(sliced.counters().late_dropped + whole.counters().late_dropped, 0, "a gap is not late");
}

#[test]
fn case_8_a_record_is_late_when_its_window_is_over_and_not_before() {
    let w = operator(windows(tumbling(ms(10))).allowed_lateness(ms(5)).aggregate(SUM));
    w.watermark_at(8);
    assert_eq!(w.put(3, 1), [], "behind the watermark, but the window is open");
    // 9 + 5 <= 14
    assert_eq!(w.watermark_at(13), [(0, 10, 1)]);
    assert_eq!(w.put(3, 1), [(0, 10, 2)]);
    w.watermark_at(14);
    w.put_late(3, 1);
    assert!(is_empty(&w));
}

#[test]
fn case_9_every_late_record_fires_the_window_again() {
    let tumbling = operator(windows(tumbling(ms(10))).allowed_lateness(ms(100)).aggregate(SUM));
    tumbling.put(1, 1);
    assert_eq!(tumbling.watermark_at(20), [(0, 10, 1)]);
    assert_eq!(tumbling.put(2, 10), [(0, 10, 11)]);
    assert_eq!(tumbling.put(3, 100), [(0, 10, 111)]);
    assert_eq!(tumbling.put(15, 5), [(10, 20, 5)], "also the first of its window");
    assert_eq!(tumbling.counters().late_fired, 3);
    assert_eq!(tumbling.watermark_at(END), []);
    // In slices: all windows that contain the record and have fired.
    let sliding = operator(windows(sliding(ms(10), ms(5))).allowed_lateness(ms(100)).aggregate(SUM));
    sliding.put(7, 1);
    assert_eq!(sliding.watermark_at(9), [(0, 10, 1)]);
    assert_eq!(sliding.put(6, 10), [(0, 10, 11)]);
    assert_eq!(sliding.watermark_at(14), [(5, 15, 11)]);
    assert_eq!(sliding.put(6, 100), [(0, 10, 111), (5, 15, 111)]);
    assert_eq!(sliding.counters().late_fired, 3);
}

#[test]
fn case_10_with_a_purging_trigger_a_late_firing_holds_what_came_since() {
    let trigger = trigger::purging(trigger::event_time());
    let w = operator(windows(tumbling(ms(10))).allowed_lateness(ms(100)).trigger(trigger).aggregate(SUM));
    w.put(1, 1);
    w.put(2, 2);
    assert_eq!(w.watermark_at(20), [(0, 10, 3)]);
    assert_eq!(w.put(2, 10), [(0, 10, 10)]);
    assert_eq!(w.put(3, 100), [(0, 10, 100)]);
}

#[test]
fn case_11_lateness_that_overflows_is_for_ever() {
    let w = operator(windows(tumbling(ms(10))).allowed_lateness(Duration::MAX).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.watermark_at(END - 1), [(0, 10, 1)]);
    assert_eq!(w.put(1, 1), [(0, 10, 2)]);
    let w = operator(windows(sliding(ms(10), ms(5))).allowed_lateness(Duration::MAX).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.watermark_at(END - 1), [(-5, 5, 1), (0, 10, 1)]);
    assert_eq!(w.put(1, 1), [(-5, 5, 2), (0, 10, 2)]);
}

#[test]
fn case_12_a_record_that_is_late_for_some_windows_is_not_late() {
    let sliced = operator(windows(sliding(ms(10), ms(5))).aggregate(SUM));
    let whole = operator(windows(sliding(ms(10), ms(5))).process(|_, _, records| [records.sum::<i64>()]));
    for w in [&sliced as &dyn Drive<i64>, &whole] {
        assert_eq!(w.watermark_at(9), []);
        assert_eq!(w.put(7, 1), [], "too late for [0, 10), in time for [5, 15)");
        w.put_late(4, 1);
        assert_eq!(w.watermark_at(END), [(5, 15, 1)]);
    }
}

#[test]
fn case_13_a_purged_window_that_is_over_gives_nothing() {
    let trigger = trigger::purging(trigger::count(2));
    let w = operator(windows(tumbling(ms(10))).allowed_lateness(ms(5)).trigger(trigger).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.put(1, 1), [(0, 10, 2)]);
    assert!(!is_empty(&w));
    assert_eq!(w.watermark_at(END), []);
    assert!(is_empty(&w));
}

#[test]
fn case_22_a_count_window_that_is_not_full_gives_nothing() {
    let w = operator(windows(count_of(3)).aggregate(SUM));
    assert_eq!(w.put(1, 1), []);
    assert_eq!(w.put(0, 2), []);
    assert_eq!(w.put(5, 3), [(i64::MIN, END, 6)]);
    assert!(is_empty(&w), "what has been counted is forgotten");
    assert_eq!(w.put(5, 4), []);
    assert_eq!(w.watermark_at(END), []);
}

use crate::window::count as count_of;

#[test]
fn case_22_a_sliding_count_window_fires_every_slide_with_up_to_size() {
    let w = operator(
        windows(sliding_count(4, 2)).process(|_, _, records| [records.copied().collect::<Vec<_>>()]),
    );
    let fired: Vec<_> = (1..=7).flat_map(|n| w.put(0, n)).map(|(_, _, records)| records).collect();
    assert_eq!(fired, [vec![1, 2], vec![1, 2, 3, 4], vec![3, 4, 5, 6]]);
    assert_eq!(w.watermark_at(END), []);
    let sums = operator(windows(sliding_count(4, 2)).aggregate(SUM));
    let fired: Vec<_> = (1..=7).flat_map(|n| sums.put(0, n)).map(|(_, _, sum)| sum).collect();
    assert_eq!(fired, [3, 10, 18]);
}

#[test]
fn case_23_the_end_of_the_input_fires_event_time_only() {
    let w = operator(windows(tumbling(ms(10))).aggregate(SUM));
    w.put(1, 1);
    w.put(11, 1);
    assert_eq!(w.watermark_at(END), [(0, 10, 1), (10, 20, 1)]);
    let w = operator(windows(tumbling(ms(10))).trigger(trigger::processing_time()).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.next_processing_timer(), Some(at(9)));
    assert_eq!(w.watermark_at(END), []);
}

#[test]
fn case_30_the_day_on_which_clocks_change_has_23_or_25_hours() {
    const HOUR: i64 = 3_600_000;
    let time = |text: &str| Timestamp::from(text.parse::<jiff::Timestamp>().unwrap()).as_millis();
    let days = calendar::days("Europe/Berlin");
    let day = |text| windows_of(&days, time(text))[0];
    let spring = day("2026-03-29T12:00:00Z");
    assert_eq!(spring, (time("2026-03-28T23:00:00Z"), time("2026-03-28T23:00:00Z") + 23 * HOUR));
    let autumn = day("2026-10-25T00:30:00Z");
    assert_eq!(autumn, (time("2026-10-24T22:00:00Z"), time("2026-10-24T22:00:00Z") + 25 * HOUR));
    // One follows the other, and the edges belong to the right one.
    assert_eq!(windows_of(&days, spring.1)[0].0, spring.1);
    assert_eq!(windows_of(&days, spring.1 - 1)[0], spring);
    // Clocks change at midnight here: the day begins at one.
    let cairo = windows_of(&calendar::days("Africa/Cairo"), time("2026-04-24T12:00:00Z"))[0];
    assert_eq!(cairo, (time("2026-04-23T22:00:00Z"), time("2026-04-24T21:00:00Z")));
    let weeks = windows_of(&calendar::weeks("Europe/Berlin"), time("2026-03-29T12:00:00Z"))[0];
    assert_eq!(weeks, (time("2026-03-22T23:00:00Z"), spring.1));
    let months = windows_of(&calendar::months("Europe/Berlin"), time("2026-03-29T12:00:00Z"))[0];
    assert_eq!(months, (time("2026-02-28T23:00:00Z"), time("2026-03-31T22:00:00Z")));
    let unknown = windows(calendar::days("Europe/Berlln")).aggregate(SUM);
    let error = Windows::<u32, i64, _>::new(unknown, Keyed::empty()).err().unwrap().to_string();
    assert!(error.contains("no time zone `Europe/Berlln`"), "{error}");
    // What no calendar reaches.
    for extreme in [i64::MIN, END - 1] {
        let (start, end) = windows_of(&days, extreme)[0];
        assert!(start <= extreme && extreme < end);
    }
}
