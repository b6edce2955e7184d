//! Random input against a naive evaluation that keeps all records and works out every window anew.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{super::*, restore::restored, restore::snapshot, *};
use crate::window::{contents::Records, tests::restore::owner, trigger};

/// What a window gives: its records by number, so that no two contents are alike.
pub(crate) type Content = Vec<i64>;
pub(crate) type Result = (u32, i64, i64, Content);

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Record { key: u32, time: i64 },
    Watermark { forward: i64 },
    Restart { parallelism: u32 },
}

/// Times are near to each other, so that edges meet.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (0u32..4, -20i64..80).prop_map(|(key, time)| Step::Record { key, time }),
        4 => (0i64..8).prop_map(|forward| Step::Watermark { forward }),
        1 => (1u32..=4).prop_map(|parallelism| Step::Restart { parallelism }),
    ];
    proptest::collection::vec(step, 1..120)
}

/// The naive evaluation.
pub(crate) trait Naive {
    /// A record has come. Returns whether it was late, and what fires at once.
    fn record(&mut self, key: u32, time: i64, record: i64) -> (bool, Vec<Result>);
    fn watermark(&mut self, watermark: i64) -> Vec<Result>;
}

/// Windows that do not merge: all records so far, with the windows that took them.
pub(crate) struct Aligned {
    windows: Box<dyn Fn(i64) -> Vec<(i64, i64)>>,
    lateness: i64,
    watermark: i64,
    taken: Vec<(u32, (i64, i64), i64)>,
}

impl Aligned {
    pub(crate) fn new(lateness: i64, windows: impl Fn(i64) -> Vec<(i64, i64)> + 'static) -> Self {
        Aligned { windows: Box::new(windows), lateness, watermark: i64::MIN, taken: Vec::new() }
    }

    fn content(&self, key: u32, window: (i64, i64)) -> Result {
        let of_it = self.taken.iter().filter(|(k, w, _)| (*k, *w) == (key, window));
        (key, window.0, window.1, sorted(of_it.map(|(_, _, record)| *record)))
    }
}

fn sorted(records: impl Iterator<Item = i64>) -> Content {
    let mut records: Vec<_> = records.collect();
    records.sort_unstable();
    records
}

impl Naive for Aligned {
    fn record(&mut self, key: u32, time: i64, record: i64) -> (bool, Vec<Result>) {
        let all = (self.windows)(time);
        let open: Vec<_> =
            all.iter().copied().filter(|(_, end)| end - 1 + self.lateness > self.watermark).collect();
        self.taken.extend(open.iter().map(|window| (key, *window, record)));
        let late_firings = open.iter().filter(|(_, end)| end - 1 <= self.watermark);
        (open.is_empty() && !all.is_empty(), late_firings.map(|window| self.content(key, *window)).collect())
    }

    fn watermark(&mut self, watermark: i64) -> Vec<Result> {
        let before = std::mem::replace(&mut self.watermark, watermark);
        let due: BTreeSet<_> = self.taken.iter().map(|(key, window, _)| (*key, *window)).collect();
        let due = due.into_iter().filter(|(_, (_, end))| end - 1 > before && end - 1 <= watermark);
        due.map(|(key, window)| self.content(key, window)).collect()
    }
}

/// Sessions: the records of each that is not over.
pub(crate) struct Sessions {
    pub(crate) gap: i64,
    pub(crate) lateness: i64,
    pub(crate) watermark: i64,
    pub(crate) open: BTreeMap<u32, Vec<(i64, i64, Content)>>,
}

impl Naive for Sessions {
    fn record(&mut self, key: u32, time: i64, record: i64) -> (bool, Vec<Result>) {
        let open = self.open.entry(key).or_default();
        let (joined, mut others): (Vec<_>, Vec<_>) =
            open.drain(..).partition(|(start, end, _)| *start <= time + self.gap && time <= *end);
        let start = joined.iter().map(|session| session.0).chain([time]).min().unwrap();
        let end = joined.iter().map(|session| session.1).chain([time + self.gap]).max().unwrap();
        if end - 1 + self.lateness <= self.watermark {
            others.extend(joined);
            *open = others;
            return (true, Vec::new());
        }
        let content = sorted(joined.into_iter().flat_map(|session| session.2).chain([record]));
        others.push((start, end, content.clone()));
        *open = others;
        let fires = end - 1 <= self.watermark;
        (false, if fires { vec![(key, start, end, content)] } else { Vec::new() })
    }

    fn watermark(&mut self, watermark: i64) -> Vec<Result> {
        let before = std::mem::replace(&mut self.watermark, watermark);
        let mut fired = Vec::new();
        for (key, open) in &mut self.open {
            let due = open.iter().filter(|(_, end, _)| end - 1 > before && end - 1 <= watermark);
            fired.extend(due.map(|(start, end, content)| (*key, *start, *end, content.clone())));
            open.retain(|(_, end, _)| end - 1 + self.lateness > watermark);
        }
        fired
    }
}

/// Everything that windows hold, kept in the accumulator: makes windows with slices comparable.
#[derive(Clone, Copy)]
pub(super) struct All;

impl Aggregate<i64> for All {
    type Accumulator = Content;
    type Output = Content;

    fn create(&self, record: &i64, _: Timestamp) -> std::result::Result<Content, crate::error::BoxError> {
        Ok(vec![*record])
    }

    fn add(
        &self,
        all: &mut Content,
        record: &i64,
        _: Timestamp,
    ) -> std::result::Result<(), crate::error::BoxError> {
        all.push(*record);
        Ok(())
    }

    fn merge(&self, all: &mut Content, other: Content) -> std::result::Result<(), crate::error::BoxError> {
        all.extend(other);
        Ok(())
    }

    fn result(&self, all: &Content) -> Content {
        sorted(all.iter().copied())
    }
}

pub(super) fn fired<S: Definition<u32, i64, Window = Window, Output = Content>>(
    windows: &mut WindowsMut<'_, u32, i64, S>,
) -> Vec<Result> {
    let row = |fired: Fired<u32, Window, Content>| {
        let Window { start, end } = fired.window;
        (lent(fired.key), start.as_millis(), end.as_millis(), fired.result)
    };
    windows.fired().map(row).collect()
}

/// Runs the steps on the operator, which restarts in between with another number of subtasks, and on the naive
/// evaluation.
fn check<S>(spec: &dyn Fn() -> S, mut naive: impl Naive, steps: &[Step])
where
    S: Definition<u32, i64, Window = Window, Output = Content>,
{
    let subtask = |table| Windows::new(spec(), table).unwrap();
    let mut subtasks = vec![subtask(Keyed::empty())];
    let mut watermark = -30;
    for (number, step) in (0..).zip(steps.iter().chain(&[Step::Watermark { forward: 1000 }])) {
        match *step {
            Step::Record { key, time } => {
                let subtask = &subtasks[owner(key, subtasks.len() as u32)];
                let mut w = subtask.borrow_mut();
                let late = w.add(&key, at(time), number).unwrap().is_some();
                let mut actual = fired(&mut w);
                let (expected_late, mut expected) = naive.record(key, time, number);
                actual.sort();
                expected.sort();
                assert_eq!((late, actual), (expected_late, expected), "record {number} at {time}");
            }
            Step::Watermark { forward } => {
                watermark += forward;
                let mut actual = Vec::new();
                for subtask in &subtasks {
                    let mut w = subtask.borrow_mut();
                    w.advance(Watermark::new(at(watermark))).unwrap();
                    let some = fired(&mut w);
                    assert!(some.is_sorted_by_key(|(_, _, end, _)| *end), "in the order of time");
                    actual.extend(some);
                }
                let mut expected = naive.watermark(watermark);
                actual.sort();
                expected.sort();
                assert_eq!(actual, expected, "watermark {watermark}");
            }
            Step::Restart { parallelism } => {
                let before = subtasks[0].watermark();
                subtasks = restarted(&subtasks, spec, parallelism);
                for subtask in &subtasks {
                    subtask.restore_watermark(before);
                }
            }
        }
    }
    assert!(naive.watermark(i64::MAX).is_empty());
    assert!(subtasks.iter().all(is_empty), "nothing is left behind");
}

/// Subtasks with what others held at their end.
pub(super) fn restarted<S: Definition<u32, i64>>(
    subtasks: &[Windows<u32, i64, S>],
    spec: &dyn Fn() -> S,
    parallelism: u32,
) -> Vec<Windows<u32, i64, S>> {
    let snapshots: Vec<_> = subtasks.iter().map(|subtask| snapshot(&subtask.table)).collect();
    // Each new subtask takes its key groups from all of the old ones.
    let mut tables = vec![Vec::new(); parallelism as usize];
    for snapshot in &snapshots {
        for (to, table) in tables.iter_mut().zip(restored(snapshot, parallelism)) {
            to.push(table);
        }
    }
    tables.into_iter().map(|parts| Windows::new(spec(), joined(&parts)).unwrap()).collect()
}

/// One table of several that share no key.
pub(crate) fn joined<V: crate::state::StateValue>(parts: &[Keyed<u32, V>]) -> Keyed<u32, V> {
    let all = Keyed::empty();
    for part in parts {
        for (key, value) in part.borrow_mut().results() {
            *all.borrow_mut().value(&lent(key), || value.clone()) = value.clone();
        }
    }
    all
}

pub(crate) fn every(size: i64, slide: i64, offset: i64) -> impl Fn(i64) -> Vec<(i64, i64)> {
    // Every window that could contain any time of the test.
    move |time| {
        let starts = (-200..200).map(|n| n * slide + offset);
        starts
            .map(|start| (start, start + size))
            .filter(|(start, end)| *start <= time && time < *end)
            .collect()
    }
}

pub(super) fn kept(_: &u32, _: &Window, records: Records<'_, i64>) -> [Content; 1] {
    [sorted(records.copied())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn tumbling_windows(steps in steps(), size in 1u64..12, lateness in 0u64..15) {
        let naive = || Aligned::new(lateness as i64, every(size as i64, size as i64, 0));
        let windows = || windows(tumbling(ms(size))).allowed_lateness(ms(lateness));
        check(&|| windows().aggregate(All), naive(), &steps);
        check(&|| windows().trigger(trigger::event_time()).aggregate(All), naive(), &steps);
    }

    #[test]
    fn sliding_windows_in_slices(
        steps in steps(), size in 1u64..16, slide in 1u64..12, offset in 0u64..12, lateness in 0u64..15,
    ) {
        let offset = offset % slide;
        let naive = Aligned::new(lateness as i64, every(size as i64, slide as i64, offset as i64));
        let spec = || {
            windows(sliding(ms(size), ms(slide)).offset(ms(offset)))
                .allowed_lateness(ms(lateness))
                .aggregate(All)
        };
        check(&spec, naive, &steps);
    }

    #[test]
    fn sliding_windows_each_for_itself(
        steps in steps(), size in 1u64..16, slide in 1u64..12, lateness in 0u64..15,
    ) {
        let naive = || Aligned::new(lateness as i64, every(size as i64, slide as i64, 0));
        let windows = || windows(sliding(ms(size), ms(slide))).allowed_lateness(ms(lateness));
        check(&|| windows().process(kept), naive(), &steps);
        check(&|| windows().trigger(trigger::event_time()).process(kept), naive(), &steps);
    }

    #[test]
    fn sessions(steps in steps(), gap in 1u64..12, lateness in 0u64..15) {
        let (gap_millis, lateness_millis) = (gap as i64, lateness as i64);
        let (watermark, open) = (i64::MIN, BTreeMap::new());
        let naive = || {
            let (gap, lateness, open) = (gap_millis, lateness_millis, open.clone());
            Sessions { gap, lateness, watermark, open }
        };
        let windows = || windows(session(ms(gap))).allowed_lateness(ms(lateness));
        check(&|| windows().aggregate(All), naive(), &steps);
        check(&|| windows().trigger(trigger::event_time()).aggregate(All), naive(), &steps);
    }
}
