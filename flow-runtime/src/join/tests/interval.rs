//! Joins by the distance of times.

use proptest::prelude::*;

use super::{OfNumbers, Row, row};
use crate::{
    join::{
        FullOuter, Inner, LeftOuter, RightOuter,
        interval::{Interval, IntervalJoin, Waiting, between},
    },
    state::Keyed,
    time::{Offset, Timestamp, Watermark},
    window::{
        Turn, WindowPort,
        tests::{
            at,
            oracle::joined,
            restore::{owner, restored, snapshot},
        },
    },
};

#[derive(Clone, Debug)]
enum Step {
    Left {
        key: u32,
        time: i64,
    },
    Right {
        key: u32,
        time: i64,
    },
    /// What has arrived goes through the loop behind.
    Turn,
    Watermark {
        forward: i64,
    },
    Restart {
        parallelism: u32,
    },
}

/// Times are near to each other, so that edges meet.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0u32..3, -20i64..60).prop_map(|(key, time)| Step::Left { key, time }),
        12 => (0u32..3, -20i64..60).prop_map(|(key, time)| Step::Right { key, time }),
        4 => Just(Step::Turn),
        4 => (0i64..8).prop_map(|forward| Step::Watermark { forward }),
        1 => (1u32..=4).prop_map(|parallelism| Step::Restart { parallelism }),
    ];
    proptest::collection::vec(step, 1..120)
}

/// All records that were in time.
struct Naive {
    lower: i64,
    upper: i64,
    watermark: i64,
    late: u64,
    /// Whether on the left, of which key, when, which, and whether it is settled whether anybody meets it.
    records: Vec<(bool, u32, i64, i64, bool)>,
}

impl Naive {
    fn record(&mut self, left: bool, key: u32, time: i64, number: i64) -> Vec<Row> {
        if time <= self.watermark {
            self.late += 1;
            return Vec::new();
        }
        let (mut rows, mut settled) = (Vec::new(), false);
        for (other_left, other_key, other_time, other, other_settled) in &mut self.records {
            if *other_left == left || *other_key != key {
                continue;
            }
            let distance = if left { *other_time - time } else { time - *other_time };
            if (self.lower..=self.upper).contains(&distance) {
                let (l, r) = if left { (number, *other) } else { (*other, number) };
                rows.push((key, Some(l), Some(r), time.max(*other_time)));
                (*other_settled, settled) = (true, true);
            }
        }
        self.records.push((left, key, time, number, settled));
        rows
    }

    /// Those whom nobody can meet any more.
    fn watermark(&mut self, watermark: i64, lefts: bool, rights: bool) -> Vec<Row> {
        self.watermark = watermark;
        let mut rows = Vec::new();
        for (left, key, time, number, settled) in &mut self.records {
            let end = if *left { *time + self.upper } else { *time - self.lower };
            if !*settled && end <= watermark {
                *settled = true;
                let time = end.max(*time);
                match *left {
                    true if lefts => rows.push((*key, Some(*number), None, time)),
                    false if rights => rows.push((*key, None, Some(*number), time)),
                    _ => {}
                }
            }
        }
        rows
    }
}

type Join<M> = IntervalJoin<u32, i64, i64, M>;

/// What comes out in a turn.
fn turn<M: OfNumbers>(join: &Join<M>, watermark: Option<i64>) -> Vec<Row> {
    let mut turn = Turn::new(watermark.map(|watermark| Watermark::new(at(watermark))), Timestamp::MIN);
    let (mut join, mut rows) = (join.borrow_mut(), Vec::new());
    while let Some(mut met) = join.turn(&mut turn).unwrap() {
        while let Some(pair) = met.next_pair() {
            rows.push(row(pair));
        }
    }
    rows
}

/// Runs the steps on the operator, which restarts in between with another number of subtasks, and on the naive
/// evaluation.
fn check<M: OfNumbers>(interval: Interval, matching: M, mut naive: Naive, steps: &[Step]) {
    let subtask = |table: Keyed<u32, Waiting<i64, i64, M>>| IntervalJoin::new(interval, matching, table);
    let mut subtasks: Vec<Join<M>> = vec![subtask(Keyed::empty())];
    let (mut watermark, mut expected, mut late) = (-30, Vec::new(), 0);
    for (number, step) in (0..).zip(steps.iter().chain(&[Step::Watermark { forward: 1000 }])) {
        let of = |key| &subtasks[owner(key, subtasks.len() as u32)];
        let next = match *step {
            Step::Left { key, time } => {
                of(key).borrow_mut().put_left(key, at(time), number).unwrap();
                expected.extend(naive.record(true, key, time, number));
                continue;
            }
            Step::Right { key, time } => {
                of(key).borrow_mut().put_right(key, at(time), number).unwrap();
                expected.extend(naive.record(false, key, time, number));
                continue;
            }
            Step::Turn | Step::Restart { .. } => None,
            Step::Watermark { forward } => Some(watermark + forward),
        };
        expected.extend(next.into_iter().flat_map(|next| naive.watermark(next, M::LEFT, M::RIGHT)));
        let mut actual: Vec<Row> = subtasks.iter().flat_map(|join| turn(join, next)).collect();
        for (.., time) in &actual {
            assert!(*time > watermark, "a result at {time} would be late behind {watermark}");
        }
        watermark = next.unwrap_or(watermark);
        actual.sort_unstable();
        expected.sort_unstable();
        assert_eq!(actual, expected, "{step:?}, number {number}");
        expected.clear();
        if let Step::Restart { parallelism } = *step {
            late += subtasks.iter().map(WindowPort::late).sum::<u64>();
            let parts: Vec<_> =
                subtasks.iter().map(|join| restored(&snapshot(&join.table), parallelism)).collect();
            let tables = (0..parallelism as usize).map(|to| {
                let parts: Vec<_> = parts.iter().map(|tables| tables[to].clone()).collect();
                joined(&parts)
            });
            subtasks = tables.map(subtask).collect();
            subtasks.iter().for_each(|join| join.restore(Watermark::new(at(watermark))));
        }
    }
    assert_eq!(late + subtasks.iter().map(WindowPort::late).sum::<u64>(), naive.late);
    for join in &subtasks {
        assert!(join.table.borrow_mut().hashed().next().is_none(), "nothing is left behind");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn between_bounds(steps in steps(), lower in -12i64..8, length in 0i64..15, open in (any::<bool>(), any::<bool>())) {
        let (mut lower, mut upper) = (lower, lower + length);
        let mut interval = between(Offset::from_millis(lower), Offset::from_millis(upper));
        if open.0 && lower < upper {
            interval = interval.exclusive_lower();
            lower += 1;
        }
        if open.1 && lower < upper {
            interval = interval.exclusive_upper();
            upper -= 1;
        }
        let naive = || Naive { lower, upper, watermark: i64::MIN, late: 0, records: Vec::new() };
        // Before the first watermark nothing is late.
        check(interval, Inner, naive(), &steps);
        check(interval, LeftOuter, naive(), &steps);
        check(interval, RightOuter, naive(), &steps);
        check(interval, FullOuter, naive(), &steps);
    }
}
