//! Random records through random attempts, against a naive evaluator: exactly once is exact, at least once is never
//! less.

mod common;

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use common::{Collected, Fault, Fuse, Script, Scripted, config, run_with};
use flow::{Config, Definition, Job, pipeline};
use proptest::{collection::vec, prelude::*, test_runner::Config as Cases};

/// A key and a value, and the record's number, by which it is known where to fail.
type Record = (u64, i64, usize);

/// Results by aggregate and key.
type Out = Collected<((String, u64), i64)>;

/// Where an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Closure,
    ClosurePanic,
    AfterExchange,
    Source,
    SourcePanic,
    Sink(Fault),
}

/// What a job is given, and where it fails.
#[derive(Clone, Debug)]
struct Case {
    /// The records of each split, in batches.
    splits: Vec<Vec<Vec<(u64, i64)>>>,
    parallelism: usize,
    interval: Duration,
    /// Each place fails once, at the record of this number.
    failures: HashMap<Place, usize>,
}

fn cases() -> impl Strategy<Value = Case> {
    let record = (0..6u64, -20..20i64);
    let splits = vec(vec(vec(record, 0..15), 0..12), 1..4);
    let place = prop_oneof![
        Just(Place::Closure),
        Just(Place::ClosurePanic),
        Just(Place::AfterExchange),
        Just(Place::Source),
        Just(Place::SourcePanic),
        Just(Place::Sink(Fault::Write)),
        Just(Place::Sink(Fault::WritePanic)),
        Just(Place::Sink(Fault::PreCommit)),
        Just(Place::Sink(Fault::CommitLost)),
        Just(Place::Sink(Fault::CommitUnheard)),
        Just(Place::Sink(Fault::CommitPanic)),
        Just(Place::Sink(Fault::Recover)),
    ];
    let failures = proptest::collection::hash_map(place, 0..200usize, 0..3);
    (splits, 1..5usize, 10..40u64, failures).prop_map(|(splits, parallelism, interval, failures)| Case {
        splits,
        parallelism,
        interval: Duration::from_millis(interval),
        failures,
    })
}

/// The input of a pipeline.
#[derive(Clone, Debug)]
struct Input {
    records: Scripted<Record>,
    traps: HashMap<Place, (usize, Fuse)>,
}

impl Input {
    fn fails(&self, place: Place, number: usize) -> bool {
        self.traps.get(&place).is_some_and(|(at, fuse)| *at == number && fuse.blows())
    }
}

impl Case {
    fn records(&self) -> impl Iterator<Item = (u64, i64)> {
        self.splits.iter().flatten().flatten().copied()
    }

    fn input(&self, out: &Out) -> Input {
        let traps: HashMap<_, _> =
            self.failures.iter().map(|(place, at)| (*place, (*at, Fuse::once()))).collect();
        for (place, (_, fuse)) in &traps {
            if let Place::Sink(fault) = place {
                let _ = out.clone().failing(*fault, fuse);
            }
        }
        let mut number = 0;
        let mut scripts = Vec::new();
        for batches in &self.splits {
            let mut script = Script::new();
            for batch in batches {
                let first = number;
                number += batch.len();
                if let Some((_, fuse)) =
                    traps.get(&Place::Source).filter(|(at, _)| (first..number).contains(at))
                {
                    script = script.fail(fuse);
                }
                if let Some((_, fuse)) =
                    traps.get(&Place::SourcePanic).filter(|(at, _)| (first..number).contains(at))
                {
                    script = script.panic(fuse);
                }
                let records = batch.iter().enumerate().map(|(i, (key, value))| (*key, *value, first + i));
                // A pause, so that checkpoints come in between.
                script = script.records(records).pause(Duration::from_millis(2));
            }
            scripts.push(script);
        }
        Input { records: Scripted::new(scripts), traps }
    }

    /// Runs the job until it ends well, through all its failures.
    fn run<D: Definition + 'static>(&self, job: Job<D>) {
        let config = Config { checkpoint_interval: Some(self.interval), ..config(&job, self.parallelism) };
        run_with(job, config).expect("each failure happens once");
    }
}

/// A result of the aggregate of this name.
fn of(aggregate: &str, key: u64, value: i64) -> ((String, u64), i64) {
    ((aggregate.to_owned(), key), value)
}

#[pipeline]
fn streaming(input: &Input, out: Out) {
    let records = source(input.records.clone()).map(|record| {
        assert!(!input.fails(Place::ClosurePanic, record.2), "the closure panicked");
        if input.fails(Place::Closure, record.2) {
            Err("the closure failed")?;
        }
        Ok(record)
    });
    let spread = records.rebalance().filter(|record| {
        assert!(!input.fails(Place::AfterExchange, record.2), "the filter panicked");
        record.1 % 7 != 0
    });
    let keyed = spread.key_by(|record| record.0);
    let sums = keyed.sum(|record| record.1).map(|(k, v)| of("sum", k, v));
    let least = keyed.min(|record| record.1).map(|(k, v)| of("min", k, v));
    let greatest = keyed.max_by(|record| record.1).map(|record| of("max", record.0, record.1));
    let squares = keyed.fold(0i64, |sum, record| *sum += record.1 * record.1).map(|(k, v)| of("fold", k, v));
    let mixed = keyed.reduce(|a, b| (a.0, a.1 ^ b.1, 0)).map(|record| of("reduce", record.0, record.1));
    let counts = keyed.count();
    let turns = counts.key_by(|(key, _)| key % 2).count().map(|(k, n)| of("count of counts", k, n as i64));
    let tallies = counts.map(|(k, n)| of("count", k, n as i64));
    let all = sums.union(least, greatest, squares, mixed, tallies, turns);
    all.sink(out.transactional());
}

#[pipeline(mode = batch)]
fn batch(input: &Input, out: Out) {
    let records = source(input.records.clone()).map(|record| {
        assert!(!input.fails(Place::ClosurePanic, record.2), "the closure panicked");
        if input.fails(Place::Closure, record.2) {
            Err("the closure failed")?;
        }
        Ok(record)
    });
    let spread = records.rebalance().filter(|record| {
        assert!(!input.fails(Place::AfterExchange, record.2), "the filter panicked");
        record.1 % 7 != 0
    });
    let keyed = spread.key_by(|record| record.0);
    let sums = keyed.sum(|record| record.1).map(|(k, v)| of("sum", k, v));
    let least = keyed.min(|record| record.1).map(|(k, v)| of("min", k, v));
    let greatest = keyed.max_by(|record| record.1).map(|record| of("max", record.0, record.1));
    let squares = keyed.fold(0i64, |sum, record| *sum += record.1 * record.1).map(|(k, v)| of("fold", k, v));
    let mixed = keyed.reduce(|a, b| (a.0, a.1 ^ b.1, 0)).map(|record| of("reduce", record.0, record.1));
    let counts = keyed.count();
    let turns = counts.key_by(|(key, _)| key % 2).count().map(|(k, n)| of("count of counts", k, n as i64));
    let tallies = counts.map(|(k, n)| of("count", k, n as i64));
    let all = sums.union(least, greatest, squares, mixed, tallies, turns);
    all.sink(out.transactional());
}

#[pipeline(guarantee = at_least_once)]
fn at_least_once(input: &Input, out: Out) {
    let records = source(input.records.clone()).map(|record| {
        assert!(!input.fails(Place::ClosurePanic, record.2), "the closure panicked");
        if input.fails(Place::Closure, record.2) {
            Err("the closure failed")?;
        }
        Ok(record)
    });
    let spread = records.rebalance().filter(|record| {
        assert!(!input.fails(Place::AfterExchange, record.2), "the filter panicked");
        record.1 % 7 != 0
    });
    let counts = spread.key_by(|record| record.0).count();
    counts.map(|(k, n)| of("count", k, n as i64)).sink(out.at_once());
}

/// The values that count, by key.
fn kept(case: &Case) -> BTreeMap<u64, Vec<i64>> {
    let mut kept = BTreeMap::<u64, Vec<i64>>::new();
    for (key, value) in case.records().filter(|(_, value)| value % 7 != 0) {
        kept.entry(key).or_default().push(value);
    }
    kept
}

/// The final results. `turns` is what the second count counts: updates, or results.
fn results(kept: &BTreeMap<u64, Vec<i64>>, turns: fn(&[i64]) -> i64) -> BTreeMap<(String, u64), i64> {
    let mut results = BTreeMap::new();
    for (key, values) in kept {
        results.extend([
            of("sum", *key, values.iter().sum()),
            of("min", *key, values.iter().copied().min().unwrap_or_default()),
            of("max", *key, values.iter().copied().max().unwrap_or_default()),
            of("fold", *key, values.iter().map(|v| v * v).sum()),
            of("reduce", *key, values.iter().fold(0, |a, b| a ^ b)),
            of("count", *key, values.len() as i64),
        ]);
        *results.entry(("count of counts".to_owned(), key % 2)).or_insert(0) += turns(values);
    }
    results
}

proptest! {
    #![proptest_config(Cases { cases: 48, failure_persistence: None, max_shrink_iters: 40, ..Cases::default() })]

    #[test]
    fn exactly_once_is_exact(case in cases()) {
        let out = Out::new();
        case.run(streaming(&case.input(&out), out.clone()));
        let emitted = out.by_key();
        let kept = kept(&case);
        let last: BTreeMap<_, _> = emitted
            .iter()
            .filter_map(|(key, values)| Some((key.clone(), *values.last()?)))
            .collect();
        prop_assert_eq!(&last, &results(&kept, |values| values.len() as i64));
        for ((aggregate, key), values) in &emitted {
            // One update per record, none lost and none twice.
            let updates = values.len() as i64;
            if aggregate.starts_with("count") {
                prop_assert_eq!(values, &(1..=updates).collect::<Vec<_>>());
            } else {
                prop_assert_eq!(updates, kept[key].len() as i64);
            }
        }
    }

    #[test]
    fn a_batch_gives_each_result_once(case in cases()) {
        let out = Out::new();
        case.run(batch(&case.input(&out), out.clone()));
        let results = results(&kept(&case), |_| 1);
        prop_assert_eq!(out.sorted(), results.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn at_least_once_is_never_less(case in cases()) {
        let out = Out::new();
        case.run(at_least_once(&case.input(&out), out.clone()));
        let emitted = out.by_key();
        for (key, values) in kept(&case) {
            let counts = &emitted[&("count".to_owned(), key)];
            prop_assert!(counts.iter().max() >= Some(&(values.len() as i64)));
            prop_assert!((1..=values.len() as i64).all(|n| counts.contains(&n)));
        }
    }
}
