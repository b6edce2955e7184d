//! Joins in windows.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::{OfNumbers, Row, row};
use crate::{
    join::{FullOuter, Inner, LeftOuter, Matching, RightOuter, Side, Tables, WindowJoin, window::Kind},
    state::{Keyed, StateValue},
    time::{Timestamp, Watermark},
    window::{
        Assigner, Turn, Window, WindowPort, WindowsOf,
        evict::NoEvictor,
        session, sliding,
        tests::{
            at, ms,
            oracle::{Aligned, Content, Naive, Result, Sessions, Step, every, steps},
            restore::{owner, share, snapshot},
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

type Join<A, T, M> = WindowJoin<u32, i64, i64, A, T, M>;

/// The tables of a subtask: a new one, or those that others left behind, of which it takes its share.
struct Share<'b> {
    left_behind: &'b [Bytes],
    parallelism: u32,
    subtask: usize,
}

impl Tables<u32> for Share<'_> {
    fn table<V: StateValue>(&mut self) -> Keyed<u32, V> {
        share(self.left_behind, self.parallelism, self.subtask)
    }
}

fn left_behind<A, T, M>(join: &Join<A, T, M>) -> Bytes
where
    A: Assigner<Numbers, Window = Window>,
    T: Triggering<Numbers, Window>,
    M: Matching,
{
    match &join.0 {
        Kind::Tiles(tiles) => snapshot(&tiles.table),
        Kind::Windows(windows) => snapshot(&windows.table),
    }
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
    let all = |left_behind: &[Bytes], parallelism| -> Vec<Join<A, T, M>> {
        let subtasks = 0..parallelism as usize;
        let tables = |subtask| Share { left_behind, parallelism, subtask };
        subtasks.map(|subtask| WindowJoin::new(windows_of().join(matching), &mut tables(subtask))).collect()
    };
    let mut subtasks = all(&[], 1);
    let (mut watermark, mut reached, mut late) = (-30, None, 0);
    let mut expected = Vec::new();
    for (number, step) in (0..).zip(steps.iter().chain(&[Step::Watermark { forward: 1000 }])) {
        let next = match *step {
            Step::Record { key, time } => {
                let mut join = subtasks[owner(key, subtasks.len() as u32)].borrow_mut();
                match is_left(number) {
                    true => join.put_left(key, at(time), number).unwrap(),
                    false => join.put_right(key, at(time), number).unwrap(),
                }
                let (dropped, results) = naive.record(key, time, number);
                late += u64::from(dropped);
                expected.extend(results.iter().flat_map(pairs::<M>));
                // Sometimes several go through the loop behind together.
                if number % 3 != 0 {
                    continue;
                }
                None
            }
            Step::Watermark { forward } => {
                watermark += forward;
                reached = Some(watermark);
                reached
            }
            Step::Restart { .. } => None,
        };
        let mut actual: Vec<Row> = subtasks.iter().flat_map(|join| turn(join, next)).collect();
        if let Some(next) = next {
            expected.extend(naive.watermark(next).iter().flat_map(pairs::<M>));
        }
        actual.sort_unstable();
        expected.sort_unstable();
        assert_eq!(actual, expected, "{step:?}, number {number}");
        expected.clear();
        if let Step::Restart { parallelism } = *step {
            let seen: u64 = subtasks.iter().map(WindowPort::late).sum();
            assert_eq!(std::mem::take(&mut late), seen);
            let before: Vec<_> = subtasks.iter().map(left_behind).collect();
            subtasks = all(&before, parallelism);
            if let Some(reached) = reached {
                subtasks.iter().for_each(|join| join.restore(Watermark::new(at(reached))));
            }
        }
    }
    assert_eq!(late, subtasks.iter().map(WindowPort::late).sum::<u64>());
    for join in &subtasks {
        let nothing = match &join.0 {
            Kind::Tiles(tiles) => tiles.table.borrow_mut().hashed().next().is_none(),
            Kind::Windows(windows) => windows.table.borrow_mut().hashed().next().is_none(),
        };
        assert!(nothing, "nothing is left behind");
    }
}

/// What comes out in a turn.
fn turn<A, T, M>(join: &Join<A, T, M>, watermark: Option<i64>) -> Vec<Row>
where
    A: Assigner<Numbers, Window = Window>,
    T: Triggering<Numbers, Window>,
    M: OfNumbers,
{
    let mut turn = Turn::new(watermark.map(|watermark| Watermark::new(at(watermark))), Timestamp::MIN);
    let (mut join, mut rows) = (join.borrow_mut(), Vec::new());
    while let Some(mut met) = join.turn(&mut turn).unwrap() {
        while let Some(pair) = met.next_pair() {
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

#[test]
fn windows_that_fire_once_become_others_and_the_other_way_round() {
    let join = |lateness, left_behind: &[Bytes]| {
        let spec = windows(tumbling(ms(10))).allowed_lateness(ms(lateness)).join(LeftOuter);
        let mut tables = Share { left_behind, parallelism: 1, subtask: 0 };
        WindowJoin::<u32, i64, i64, _, _, _>::new(spec, &mut tables)
    };
    for (from, to) in [(0, 5), (5, 0), (0, 0), (5, 5)] {
        let before = join(from, &[]);
        for (time, number) in [(3, 1), (12, 2), (24, 3)] {
            before.borrow_mut().put_left(7, at(time), number).unwrap();
        }
        before.borrow_mut().put_right(7, at(15), 4).unwrap();
        assert_eq!(turn(&before, Some(9)), [(7, Some(1), None, 9)]);
        before.borrow_mut().put_right(7, at(29), 5).unwrap();
        assert_eq!(turn(&before, Some(14)), []);

        let after = join(to, &[left_behind(&before)]);
        assert!(matches!((&after.0, to), (Kind::Tiles(_), 0) | (Kind::Windows(_), 5)));
        after.restore(Watermark::new(at(14)));
        after.borrow_mut().put_right(7, at(16), 6).unwrap();
        let rows = [(7, Some(2), Some(4), 19), (7, Some(2), Some(6), 19), (7, Some(3), Some(5), 29)];
        assert_eq!(turn(&after, Some(1000)), rows, "{from} to {to}");
    }
}

#[test]
fn many_records_of_a_key_in_turn_of_two_windows_keep_their_order() {
    let join = WindowJoin::<u32, i64, i64, _, _, _>::new(
        windows(tumbling(ms(10))).join(Inner),
        &mut Share { left_behind: &[], parallelism: 1, subtask: 0 },
    );
    let number = 200_000;
    let put = |join: &Join<_, _, _>, from: i64, to: i64| {
        for n in from..to {
            // To move those of the later window each time would be 10,000,000,000 steps.
            join.borrow_mut().put_left(1, at(if n % 2 == 0 { 15 } else { 5 }), n).unwrap();
        }
    };
    put(&join, 0, number / 2);
    assert_eq!(turn(&join, None), []);
    // As a checkpoint has it, they are in order, and more may come.
    let after = WindowJoin::new(
        windows(tumbling(ms(10))).join(Inner),
        &mut Share { left_behind: &[left_behind(&join)], parallelism: 1, subtask: 0 },
    );
    put(&after, number / 2, number);
    for time in [7, 17] {
        after.borrow_mut().put_right(1, at(time), time).unwrap();
    }
    let expected = |odd, time, end| {
        (odd..number).step_by(2).map(move |n| (1, Some(n), Some(time), end)).collect::<Vec<Row>>()
    };
    assert_eq!(turn(&after, Some(9)), expected(1, 7, 9));
    assert_eq!(turn(&after, Some(19)), expected(0, 17, 19));
}
