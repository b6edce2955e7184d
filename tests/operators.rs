//! Every operator, fused and split, at several parallelisms, in streaming and in batch mode: exact outputs.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use common::{Collected, run, sorted};
use flow::{
    Stream,
    collection::{collection, iterate, range},
    file, pipeline,
};

/// Fused, and split.
const PARALLELISMS: [usize; 2] = [1, 3];

/// The index of the worker that runs this closure.
fn worker() -> usize {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    name.rsplit('-').next().and_then(|index| index.parse().ok()).expect("workers are numbered")
}

#[pipeline]
fn one_to_one(seen: Arc<AtomicU64>, out: Collected<u64>) {
    source(range(0..1000))
        .map(|n| n * 2)
        .filter(|n| n % 3 == 0)
        .filter_map(|n| (n % 4 == 0).then_some(n / 4))
        .flat_map(|n| [n, n + 1])
        .inspect(|_| {
            seen.fetch_add(1, Ordering::SeqCst);
        })
        .sink(out.transactional());
}

#[test]
fn stateless_operators() {
    let expected = sorted(
        (0..1000u64)
            .map(|n| n * 2)
            .filter(|n| n % 3 == 0)
            .filter_map(|n| (n % 4 == 0).then_some(n / 4))
            .flat_map(|n| [n, n + 1]),
    );
    for parallelism in PARALLELISMS {
        let (seen, out) = (Arc::default(), Collected::new());
        run(one_to_one(Arc::clone(&seen), out.clone()), parallelism);
        assert_eq!(out.sorted(), expected);
        assert_eq!(seen.load(Ordering::SeqCst), expected.len() as u64);
    }
}

#[pipeline]
fn own_parallelisms(out: Collected<u64>) {
    source(range(0..1000))
        .parallelism(2)
        .map(|n| n + 1)
        .parallelism(1)
        .filter(|n| n % 2 == 0)
        .parallelism(4)
        .map(|n| n * 10)
        .disable_chaining()
        .parallelism(3)
        .map(|n| n + 1)
        .start_new_chain()
        .sink(out.transactional())
        .parallelism(2);
}

#[test]
fn each_operator_at_a_parallelism_of_its_own() {
    let expected = sorted((0..1000u64).map(|n| n + 1).filter(|n| n % 2 == 0).map(|n| n * 10 + 1));
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(own_parallelisms(out.clone()), parallelism);
        assert_eq!(out.sorted(), expected);
    }
}

#[pipeline]
fn cut_before_exchanges(out: Collected<(u64, u64)>) {
    let numbers = source(range(0..1000)).parallelism(2).map(|n| n + 1).disable_chaining().parallelism(3);
    let spread = numbers.rebalance().map(|n| n).disable_chaining().parallelism(2);
    let counts = spread.key_by(|n| n % 10).count().parallelism(4).disable_chaining();
    counts.global().sink(out.transactional()).parallelism(2);
}

#[test]
fn an_exchange_in_a_chain_of_its_own_runs_where_its_sender_does() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(cut_before_exchanges(out.clone()), parallelism);
        assert_eq!(out.by_key(), (0..10).map(|key| (key, (1..=100).collect())).collect());
    }
}

#[pipeline]
fn borrowed_words(input: &str, out: Collected<(String, u64)>) {
    let words = source(file::text(input)).rebalance().flat_map(|line| line.split_whitespace());
    let counts = words.key_by(|word| *word).count();
    counts.map(|(word, n)| (word.to_owned(), n)).sink(out.transactional());
}

#[test]
fn borrowed_items_cross_exchanges() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("words.txt");
    fs::write(&path, "to be or not to be\n".repeat(200)).unwrap();
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(borrowed_words(path.to_str().unwrap(), out.clone()), parallelism);
        let counts = out.by_key();
        for (word, times) in [("to", 400), ("be", 400), ("or", 200), ("not", 200)] {
            assert_eq!(counts[word], (1..=times).collect::<Vec<u64>>(), "`{word}`");
        }
        assert_eq!(counts.len(), 4);
    }
}

type Aggregates = Collected<((String, u64), i64)>;

/// A result of the aggregate of this name.
fn of(aggregate: &str, key: u64, value: i64) -> ((String, u64), i64) {
    ((aggregate.to_owned(), key), value)
}

/// Records of 7 keys, in one order.
fn records() -> impl Iterator<Item = (u64, i64)> + Send {
    (0..500u64).map(|n| (n % 7, (n as i64 * 37) % 101 - 50))
}

#[pipeline]
fn rolling(out: Aggregates) {
    let keyed = source(iterate(records)).key_by(|(key, _)| *key);
    let reduced = keyed.reduce(|a, b| (a.0, a.1 * 3 % 1000 + b.1)).map(|(k, v)| of("reduce", k, v));
    let folded = keyed.fold(7i64, |sum, (_, v)| *sum = *sum * 5 % 1000 + v).map(|(k, v)| of("fold", k, v));
    let sums = keyed.sum(|(_, v)| *v).map(|(k, v)| of("sum", k, v));
    let least = keyed.min(|(_, v)| *v).map(|(k, v)| of("min", k, v));
    let greatest = keyed.max(|(_, v)| *v).map(|(k, v)| of("max", k, v));
    let least_by = keyed.min_by(|(_, v)| v.abs()).map(|(k, v)| of("min_by", k, v));
    let greatest_by = keyed.max_by(|(_, v)| v.abs()).map(|(k, v)| of("max_by", k, v));
    let counts = keyed.count().map(|(k, n)| of("count", k, n as i64));
    let all = reduced.union(folded, sums, least, greatest, least_by, greatest_by, counts);
    all.sink(out.transactional());
}

#[pipeline(mode = batch)]
fn final_results(out: Aggregates) {
    let keyed = source(iterate(records)).key_by(|(key, _)| *key);
    let reduced = keyed.reduce(|a, b| (a.0, a.1 * 3 % 1000 + b.1)).map(|(k, v)| of("reduce", k, v));
    let folded = keyed.fold(7i64, |sum, (_, v)| *sum = *sum * 5 % 1000 + v).map(|(k, v)| of("fold", k, v));
    let sums = keyed.sum(|(_, v)| *v).map(|(k, v)| of("sum", k, v));
    let least = keyed.min(|(_, v)| *v).map(|(k, v)| of("min", k, v));
    let greatest = keyed.max(|(_, v)| *v).map(|(k, v)| of("max", k, v));
    let least_by = keyed.min_by(|(_, v)| v.abs()).map(|(k, v)| of("min_by", k, v));
    let greatest_by = keyed.max_by(|(_, v)| v.abs()).map(|(k, v)| of("max_by", k, v));
    let counts = keyed.count().map(|(k, n)| of("count", k, n as i64));
    let all = reduced.union(folded, sums, least, greatest, least_by, greatest_by, counts);
    all.sink(out.transactional());
}

/// What each aggregate of [`rolling`] emits for each key, in order.
fn expected_aggregates() -> BTreeMap<(String, u64), Vec<i64>> {
    let mut values = BTreeMap::<u64, Vec<i64>>::new();
    for (key, value) in records() {
        values.entry(key).or_default().push(value);
    }
    let mut expected = BTreeMap::new();
    for (key, values) in values {
        let mut scan = |name: &str, initial: Option<i64>, step: fn(i64, i64) -> i64| {
            let mut held = initial;
            let emitted = values.iter().map(|v| {
                let next = held.map_or(*v, |held| step(held, *v));
                held = Some(next);
                next
            });
            expected.insert((name.to_owned(), key), emitted.collect());
        };
        scan("reduce", None, |a, b| a * 3 % 1000 + b);
        scan("fold", Some(7), |a, b| a * 5 % 1000 + b);
        scan("sum", None, |a, b| a + b);
        scan("min", None, i64::min);
        scan("max", None, i64::max);
        // Of equals, the first stays.
        scan("min_by", None, |a, b| if b.abs() < a.abs() { b } else { a });
        scan("max_by", None, |a, b| if b.abs() > a.abs() { b } else { a });
        let counts = (1..=values.len() as i64).collect();
        expected.insert(("count".to_owned(), key), counts);
    }
    expected
}

#[test]
fn aggregates_update_per_key_in_order() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(rolling(out.clone()), parallelism);
        assert_eq!(out.by_key(), expected_aggregates());
    }
}

#[test]
fn aggregates_give_one_result_per_key_in_batch_mode() {
    let last = |values: Vec<i64>| values[values.len() - 1..].to_vec();
    let expected: BTreeMap<_, _> =
        expected_aggregates().into_iter().map(|(key, values)| (key, last(values))).collect();
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(final_results(out.clone()), parallelism);
        assert_eq!(out.by_key(), expected);
    }
}

#[pipeline(mode = batch)]
fn counts_of_counts(out: Collected<(u64, u64)>) {
    let words = source(collection(vec!["a", "b", "a", "c", "d", "a", "d", "e"]));
    let counts = words.key_by(|word| *word).count();
    counts.key_by(|(_, n)| *n).count().sink(out.transactional());
}

#[test]
fn one_aggregate_after_another_in_batch_mode() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(counts_of_counts(out.clone()), parallelism);
        assert_eq!(out.sorted(), [(1, 3), (2, 1), (3, 1)]);
    }
}

#[pipeline(mode = batch)]
fn many_results(out: Collected<(u64, u64)>) {
    let counts = source(range(0..20_000)).key_by(|n| *n).count();
    counts.sink(out.transactional());
}

#[test]
fn more_results_at_the_end_than_the_sink_takes_at_once() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(many_results(out.clone()), parallelism);
        assert_eq!(out.sorted(), (0..20_000).map(|n| (n, 1)).collect::<Vec<_>>());
    }
}

type Placed = Collected<(usize, u64)>;

fn by_worker(out: &Placed) -> BTreeMap<usize, Vec<u64>> {
    out.by_key().into_iter().map(|(worker, records)| (worker, sorted(records))).collect()
}

#[pipeline]
fn rebalanced(out: Placed) {
    source(iterate(|| 0..3000u64)).rebalance().map(|n| (worker(), n)).sink(out.transactional());
}

#[test]
fn rebalance_deals_out_evenly() {
    let out = Collected::new();
    run(rebalanced(out.clone()), 3);
    let by_worker = by_worker(&out);
    assert_eq!(by_worker.values().map(Vec::len).collect::<Vec<_>>(), [1000; 3]);
    assert_eq!(sorted(by_worker.into_values().flatten()), (0..3000).collect::<Vec<_>>());
}

#[pipeline]
fn rescaled(out: Collected<(usize, (usize, u64))>) {
    source(range(0..4000))
        .parallelism(2)
        .map(|n| (worker(), n))
        .parallelism(2)
        .rescale()
        .map(|record| (worker(), record))
        .parallelism(4)
        .sink(out.transactional())
        .parallelism(4);
}

#[test]
fn rescale_deals_out_among_a_share() {
    let out = Collected::new();
    run(rescaled(out.clone()), 1);
    let mut routes = BTreeMap::<(usize, usize), u64>::new();
    for (to, (from, _)) in out.records() {
        *routes.entry((from, to)).or_default() += 1;
    }
    assert_eq!(routes.keys().copied().collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 2), (1, 3)]);
    assert!(routes.values().all(|n| *n >= 900), "{routes:?}");
    assert_eq!(sorted(out.records().into_iter().map(|(_, (_, n))| n)), (0..4000).collect::<Vec<_>>());
}

#[pipeline]
fn broadcasted(out: Placed) {
    source(range(0..500)).broadcast().map(|n| (worker(), n)).sink(out.transactional());
}

#[test]
fn broadcast_gives_all_to_each() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(broadcasted(out.clone()), parallelism);
        let all: Vec<u64> = (0..500).collect();
        assert_eq!(by_worker(&out), (0..parallelism).map(|worker| (worker, all.clone())).collect());
    }
}

#[pipeline]
fn forwarded(out: Collected<(usize, usize)>) {
    source(range(0..500)).map(|_| worker()).forward().map(|from| (from, worker())).sink(out.transactional());
}

#[test]
fn forward_stays_on_its_subtask() {
    let out = Collected::new();
    run(forwarded(out.clone()), 3);
    assert_eq!(out.len(), 500);
    assert!(out.records().iter().all(|(from, to)| from == to));
    assert_eq!(out.by_key().len(), 3);
}

#[pipeline]
fn to_the_first(out: Placed) {
    source(range(0..500)).global().map(|n| (worker(), n)).sink(out.transactional());
}

#[test]
fn global_gives_all_to_the_first() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(to_the_first(out.clone()), parallelism);
        assert_eq!(by_worker(&out), [(0, (0..500).collect())].into());
    }
}

#[pipeline]
fn partitioned(out: Placed) {
    source(range(0..600))
        .partition_custom(|key, subtasks| (key % subtasks as u64) as usize, |n| n / 2)
        .map(|n| (worker(), n))
        .sink(out.transactional());
}

#[test]
fn a_partitioner_of_ones_own() {
    let out = Collected::new();
    run(partitioned(out.clone()), 3);
    let expected = (0..3).map(|w| (w as usize, (0..600).filter(|n| n / 2 % 3 == w).collect())).collect();
    assert_eq!(by_worker(&out), expected);
    let out = Collected::new();
    run(partitioned(out.clone()), 1);
    assert_eq!(by_worker(&out), [(0, (0..600).collect())].into());
}

#[pipeline]
fn keyed_by_hash(out: Placed) {
    let counts = source(range(0..6000)).key_by(|n| n % 60).count();
    counts.map(|(key, _)| (worker(), key)).sink(out.transactional());
}

#[test]
fn a_key_has_one_subtask() {
    let out = Collected::new();
    run(keyed_by_hash(out.clone()), 3);
    let keys: Vec<BTreeSet<u64>> =
        by_worker(&out).into_values().map(|keys| keys.into_iter().collect()).collect();
    assert_eq!(keys.len(), 3, "all subtasks have some of 60 keys");
    assert_eq!(keys.iter().map(BTreeSet::len).sum::<usize>(), 60);
}

#[pipeline]
fn forked(small: Collected<u64>, large: Collected<u64>, all: Collected<u64>) {
    let numbers = source(range(0..1000)).map(|n| n + 1);
    numbers.filter(|n| *n <= 300).sink(small.transactional());
    numbers.filter(|n| *n > 300).sink(large.transactional());
    numbers.sink(all.transactional());
}

#[test]
fn a_name_used_twice_forks_the_stream() {
    for parallelism in PARALLELISMS {
        let (small, large, all) = (Collected::new(), Collected::new(), Collected::new());
        run(forked(small.clone(), large.clone(), all.clone()), parallelism);
        assert_eq!(small.sorted(), (1..=300).collect::<Vec<_>>());
        assert_eq!(large.sorted(), (301..=1000).collect::<Vec<_>>());
        assert_eq!(all.sorted(), (1..=1000).collect::<Vec<_>>());
    }
}

#[pipeline]
fn united(out: Collected<u64>) {
    let even = source(range(0..100)).map(|n| n * 2);
    let odd = source(range(0..100)).map(|n| n * 2 + 1).parallelism(2);
    let thousands = source(iterate(|| [1000u64, 2000].into_iter()));
    even.union(odd, thousands).sink(out.transactional());
}

#[test]
fn a_union_of_streams() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(united(out.clone()), parallelism);
        assert_eq!(out.sorted(), (0..200).chain([1000, 2000]).collect::<Vec<_>>());
    }
}

#[pipeline]
fn rejoined(out: Collected<(u64, u64)>) {
    let numbers = source(range(0..1000));
    let small = numbers.filter(|n| n % 2 == 0).rebalance().map(|n| n % 10);
    let others = numbers.filter(|n| n % 2 == 1).map(|n| n % 10);
    let counts = small.union(others).key_by(|n| *n).count();
    counts.sink(out.transactional());
}

#[test]
fn a_fork_that_is_united_again() {
    let expected: BTreeMap<u64, Vec<u64>> = (0..10).map(|key| (key, (1..=100).collect())).collect();
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(rejoined(out.clone()), parallelism);
        assert_eq!(out.by_key(), expected);
    }
}

#[pipeline]
fn counted(words: Stream<String>, least: usize) -> Stream<(String, u64)> {
    words.filter(|word| word.len() >= least).key_by(|word| word.clone()).count()
}

#[pipeline]
fn around_a_helper(out: Collected<(String, u64)>) {
    let lines = source(collection(vec!["to be", "or not", "to be"])).parallelism(2);
    let words = lines.flat_map(|line| line.split(' ')).map(|word| word.to_owned()).parallelism(4);
    let counts = counted(words, 3).map(|count| count).parallelism(2);
    counts.sink(out.transactional()).parallelism(1);
}

#[test]
fn a_helper_function_between_other_parallelisms() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(around_a_helper(out.clone()), parallelism);
        assert_eq!(out.sorted(), [("not".to_owned(), 1)]);
    }
}

#[pipeline]
fn with_helpers(out: Collected<(String, u64)>) {
    let lines = source(collection(vec!["to be", "or not", "to be"]));
    let words = lines.flat_map(|line| line.split(' ')).map(|word| word.to_owned());
    let twos = counted(words, 2);
    let threes = counted(words, 3);
    twos.union(threes).sink(out.transactional());
}

#[test]
fn helper_functions_have_state_of_their_own() {
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(with_helpers(out.clone()), parallelism);
        let expected = [("be", 1), ("be", 2), ("not", 1), ("not", 1), ("or", 1), ("to", 1), ("to", 2)];
        assert_eq!(out.sorted(), expected.map(|(word, n)| (word.to_owned(), n)));
    }
}

#[pipeline(guarantee = at_least_once)]
fn at_least_once(out: Collected<(u64, u64)>) {
    source(range(0..1000)).key_by(|n| n % 5).count().sink(out.at_once());
}

#[pipeline(guarantee = at_most_once)]
fn at_most_once(out: Collected<(u64, u64)>) {
    source(range(0..1000)).key_by(|n| n % 5).count().sink(out.at_once());
}

#[test]
fn weaker_guarantees_give_the_same_when_nothing_fails() {
    let expected: BTreeMap<u64, Vec<u64>> = (0..5).map(|key| (key, (1..=200).collect())).collect();
    for parallelism in PARALLELISMS {
        let out = Collected::new();
        run(at_least_once(out.clone()), parallelism);
        assert_eq!(out.by_key(), expected);
        let out = Collected::new();
        run(at_most_once(out.clone()), parallelism);
        assert_eq!(out.by_key(), expected);
    }
}
