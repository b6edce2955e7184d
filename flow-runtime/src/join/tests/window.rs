//! Joins in windows.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{OfNumbers, Row, row};
use crate::{
    join::{FullOuter, Inner, Joined, LeftOuter, Matching, RightOuter, Side},
    state::Keyed,
    time::Watermark,
    window::{
        Assigner, Spec, Window, Windows, WindowsMut, WindowsOf,
        evict::NoEvictor,
        session, sliding,
        tests::{
            at, ms,
            oracle::{Aligned, Content, Naive, Result, Sessions, Step, every, joined, steps},
            restore::{owner, restored, snapshot},
        },
        timing::Triggering,
        tumbling, windows,
    },
};

type Numbers = Side<i64, i64>;

/// Even numbers are on the left.
fn is_left(number: i64) -> bool {
    number % 2 == 0
}

/// What comes out of a window that holds these.
fn pairs<M: Matching>((key, _, end, content): &Result) -> Vec<Row> {
    let (left, right): (Content, Content) = content.iter().partition(|number| is_left(**number));
    let row = |left, right| (*key, left, right, end - 1);
    let mut rows: Vec<Row> =
        left.iter().flat_map(|l| right.iter().map(|r| row(Some(*l), Some(*r)))).collect();
    if right.is_empty() && M::LEFT {
        rows.extend(left.iter().map(|l| row(Some(*l), None)));
    }
    if left.is_empty() && M::RIGHT {
        rows.extend(right.iter().map(|r| row(None, Some(*r))));
    }
    rows
}

fn check<M, A, T>(
    windows_of: &dyn Fn() -> WindowsOf<A, T, NoEvictor>,
    matching: M,
    mut naive: impl Naive,
    steps: &[Step],
) where
    M: OfNumbers,
    A: Assigner<Numbers, Window = Window>,
    T: Triggering<Numbers, Window>,
{
    let subtask = |table| Windows::new(windows_of().join(matching), table).unwrap();
    let mut subtasks = vec![subtask(Keyed::empty())];
    let (mut watermark, mut late) = (-30, 0);
    for (number, step) in (0..).zip(steps.iter().chain(&[Step::Watermark { forward: 1000 }])) {
        let (mut actual, mut expected) = (Vec::new(), Vec::new());
        match *step {
            Step::Record { key, time } => {
                let mut w = subtasks[owner(key, subtasks.len() as u32)].borrow_mut();
                match is_left(number) {
                    true => w.put_left(key, at(time), number).unwrap(),
                    false => w.put_right(key, at(time), number).unwrap(),
                }
                actual = fired(&mut w);
                let (dropped, results) = naive.record(key, time, number);
                late += u64::from(dropped);
                expected = results;
            }
            Step::Watermark { forward } => {
                watermark += forward;
                for subtask in &subtasks {
                    let mut w = subtask.borrow_mut();
                    w.advance(Watermark::new(at(watermark))).unwrap();
                    actual.extend(fired(&mut w));
                }
                expected = naive.watermark(watermark);
            }
            Step::Restart { parallelism } => {
                let seen: u64 = subtasks.iter().map(|subtask| subtask.counters().late_dropped).sum();
                assert_eq!(std::mem::take(&mut late), seen);
                let parts: Vec<_> =
                    subtasks.iter().map(|subtask| restored(&snapshot(&subtask.table), parallelism)).collect();
                let before = subtasks[0].watermark();
                subtasks = (0..parallelism as usize)
                    .map(|to| {
                        let parts: Vec<_> = parts.iter().map(|tables| tables[to].clone()).collect();
                        subtask(joined(&parts))
                    })
                    .collect();
                subtasks.iter().for_each(|subtask| subtask.restore_watermark(before));
            }
        }
        let mut expected: Vec<_> = expected.iter().flat_map(pairs::<M>).collect();
        actual.sort_unstable();
        expected.sort_unstable();
        assert_eq!(actual, expected, "{step:?}, number {number}");
    }
    let seen: u64 = subtasks.iter().map(|subtask| subtask.counters().late_dropped).sum();
    assert_eq!(late, seen);
}

fn fired<A, T, M>(w: &mut WindowsMut<'_, u32, Numbers, Spec<A, T, Joined<M>>>) -> Vec<Row>
where
    M: OfNumbers,
    A: Assigner<Numbers, Window = Window>,
    T: Triggering<Numbers, Window>,
{
    let mut rows = Vec::new();
    for mut fired in w.fired() {
        let mut pairs = fired.pairs();
        while let Some(pair) = pairs.next_pair() {
            rows.push(row(pair));
        }
    }
    rows
}

/// All kinds of joins, in the same windows.
fn check_all<A, T>(
    windows_of: &dyn Fn() -> WindowsOf<A, T, NoEvictor>,
    naive: &dyn Fn() -> Box<dyn Naive>,
    steps: &[Step],
) where
    A: Assigner<Numbers, Window = Window>,
    T: Triggering<Numbers, Window>,
{
    check(windows_of, Inner, naive(), steps);
    check(windows_of, LeftOuter, naive(), steps);
    check(windows_of, RightOuter, naive(), steps);
    check(windows_of, FullOuter, naive(), steps);
}

impl Naive for Box<dyn Naive> {
    fn record(&mut self, key: u32, time: i64, record: i64) -> (bool, Vec<Result>) {
        (**self).record(key, time, record)
    }
    fn watermark(&mut self, watermark: i64) -> Vec<Result> {
        (**self).watermark(watermark)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn in_tumbling_windows(steps in steps(), size in 1u64..12, lateness in 0u64..15) {
        // Half of the time none, with which what is held goes when the window fires.
        let lateness = lateness.saturating_sub(7);
        let naive = || -> Box<dyn Naive> {
            Box::new(Aligned::new(lateness as i64, every(size as i64, size as i64, 0)))
        };
        check_all(&|| windows(tumbling(ms(size))).allowed_lateness(ms(lateness)), &naive, &steps);
    }

    #[test]
    fn in_sliding_windows(steps in steps(), size in 1u64..16, slide in 1u64..12, lateness in 0u64..15) {
        let lateness = lateness.saturating_sub(7);
        let naive = || -> Box<dyn Naive> {
            Box::new(Aligned::new(lateness as i64, every(size as i64, slide as i64, 0)))
        };
        check_all(&|| windows(sliding(ms(size), ms(slide))).allowed_lateness(ms(lateness)), &naive, &steps);
    }

    #[test]
    fn in_sessions(steps in steps(), gap in 1u64..12, lateness in 0u64..15) {
        let lateness = lateness.saturating_sub(7);
        let naive = || -> Box<dyn Naive> {
            let (watermark, open) = (i64::MIN, BTreeMap::new());
            Box::new(Sessions { gap: gap as i64, lateness: lateness as i64, watermark, open })
        };
        check_all(&|| windows(session(ms(gap))).allowed_lateness(ms(lateness)), &naive, &steps);
    }
}
