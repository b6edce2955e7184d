//! Edge cases, each with its value.

use std::time::Duration;

use super::{OfNumbers, Row, row};
use crate::{
    join::{
        FullOuter, Inner,
        interval::{Interval, IntervalJoin, between},
    },
    state::Keyed,
    time::{Offset, Timestamp, Watermark},
    window::{Turn, WindowPort, tests::at},
};

fn turn<M: OfNumbers>(join: &IntervalJoin<u32, i64, i64, M>, watermark: Option<i64>) -> Vec<Row> {
    let mut turn = Turn::new(watermark.map(|watermark| Watermark::new(at(watermark))), Timestamp::MIN);
    let (mut join, mut rows) = (join.borrow_mut(), Vec::new());
    while let Some(mut met) = join.turn(&mut turn).unwrap() {
        while let Some(pair) = met.next_pair() {
            rows.push(row(pair));
        }
    }
    rows
}

fn seconds(lower: i64, upper: i64) -> Interval {
    between(Offset::from_millis(lower * 1000), Offset::from_millis(upper * 1000))
}

#[test]
fn both_bounds_are_inclusive_unless_they_are_not() {
    for (interval, expected) in [
        (seconds(-5, 10), &[(-5), 0, 10][..]),
        (seconds(-5, 10).exclusive_lower(), &[0, 10]),
        (seconds(-5, 10).exclusive_upper(), &[-5, 0]),
    ] {
        let join = IntervalJoin::new(interval, Inner, Keyed::empty());
        join.borrow_mut().put_left(1, at(100_000), 0).unwrap();
        for distance in [-6, -5, 0, 10, 11] {
            join.borrow_mut().put_right(1, at(100_000 + distance * 1000), distance).unwrap();
        }
        let met: Vec<_> = turn(&join, None).into_iter().map(|(_, _, right, _)| right.unwrap()).collect();
        assert_eq!(met, expected);
    }
}

#[test]
fn the_result_has_the_later_time_of_both() {
    let join = IntervalJoin::new(seconds(-5, 5), Inner, Keyed::empty());
    join.borrow_mut().put_left(1, at(7_000), 1).unwrap();
    join.borrow_mut().put_right(1, at(4_000), 2).unwrap();
    join.borrow_mut().put_right(1, at(9_000), 3).unwrap();
    assert_eq!(turn(&join, None), [(1, Some(1), Some(2), 7_000), (1, Some(1), Some(3), 9_000)]);
}

#[test]
fn records_of_the_same_time_meet_each_in_the_order_in_which_they_came() {
    let join = IntervalJoin::new(seconds(0, 0), Inner, Keyed::empty());
    for number in 0..3 {
        join.borrow_mut().put_left(1, at(5), number).unwrap();
    }
    join.borrow_mut().put_right(1, at(5), 9).unwrap();
    let expected: Vec<Row> = (0..3).map(|number| (1, Some(number), Some(9), 5)).collect();
    assert_eq!(turn(&join, None), expected);
}

#[test]
fn keys_do_not_meet() {
    let join = IntervalJoin::new(seconds(-5, 5), Inner, Keyed::empty());
    join.borrow_mut().put_left(1, at(5), 1).unwrap();
    join.borrow_mut().put_right(2, at(5), 2).unwrap();
    assert_eq!(turn(&join, Some(i64::MAX)), []);
}

#[test]
fn a_record_behind_the_watermark_is_late_and_one_ahead_of_it_is_not() {
    let join = IntervalJoin::new(seconds(-5, 5), FullOuter, Keyed::empty());
    join.borrow_mut().put_left(1, at(1_000), 1).unwrap();
    assert_eq!(turn(&join, Some(2_000)), []);
    join.borrow_mut().put_right(1, at(2_000), 2).unwrap();
    assert_eq!((turn(&join, None), join.late()), (vec![], 1));
    join.borrow_mut().put_right(1, at(2_001), 3).unwrap();
    assert_eq!((turn(&join, None), join.late()), (vec![(1, Some(1), Some(3), 2_001)], 1));
}

#[test]
fn a_record_leaves_when_the_last_one_that_could_meet_it_would_be_late() {
    let join = IntervalJoin::new(seconds(2, 5), FullOuter, Keyed::empty());
    join.borrow_mut().put_left(1, at(1_000), 1).unwrap();
    join.borrow_mut().put_right(1, at(1_000), 2).unwrap();
    // The right one waits for a left one of -4 to -1 seconds, which can come as long as the watermark is behind.
    assert_eq!(turn(&join, Some(-1_001)), []);
    assert_eq!(turn(&join, Some(-1_000)), [(1, None, Some(2), 1_000)]);
    assert_eq!(turn(&join, Some(5_999)), []);
    assert_eq!(turn(&join, Some(6_000)), [(1, Some(1), None, 6_000)]);
    assert!(join.table.borrow_mut().hashed().next().is_none());
}

#[test]
fn times_at_the_ends_of_all_time_are_no_trouble() {
    let join = IntervalJoin::new(seconds(-5, 5), FullOuter, Keyed::empty());
    join.borrow_mut().put_left(1, at(i64::MAX - 1), 1).unwrap();
    join.borrow_mut().put_right(1, at(i64::MAX - 2), 2).unwrap();
    join.borrow_mut().put_right(1, at(i64::MIN + 2), 3).unwrap();
    let met = turn(&join, Some(i64::MAX));
    assert_eq!(met.len(), 2);
    assert_eq!((met[0].1, met[0].2), (Some(1), Some(2)));
    assert_eq!((met[1].1, met[1].2), (None, Some(3)));
}

#[test]
fn bounds_without_a_time_between_them_are_refused() {
    assert!(between(Duration::from_secs(1), Duration::from_secs(1)).check().is_ok());
    assert!(between(Duration::from_secs(2), Duration::from_secs(1)).check().is_err());
    assert!(between(Duration::from_secs(1), Duration::from_secs(1)).exclusive_lower().check().is_err());
}

#[test]
fn many_records_of_a_key_that_are_far_away_cost_nothing() {
    let join = IntervalJoin::new(seconds(0, 0), Inner, Keyed::empty());
    let number = 200_000;
    for time in 0..number {
        join.borrow_mut().put_left(1, at(time), time).unwrap();
    }
    assert_eq!(turn(&join, None), []);
    // To look at all of them for each would be 40,000,000,000 steps.
    for time in 0..number {
        join.borrow_mut().put_right(1, at(time), time).unwrap();
    }
    assert_eq!(turn(&join, None).len(), number as usize);
    assert_eq!(turn(&join, Some(number)), []);
    assert!(join.table.borrow_mut().hashed().next().is_none());
}
