//! Windows of all kinds, and all that can be computed of them.

use flow::{
    collection::range,
    file, pipeline,
    watermark::{bounded, ingestion, monotonous},
    window::{aggregate, count, global, session, sliding, trigger, tumbling},
};

#[pipeline(guarantee = at_least_once)]
fn of_all() {
    let numbers = source(range(0..9)).watermarks(monotonous(), |n| *n);
    numbers.window_all(tumbling("1s")).count().sink(file::to_tsv("a"));
    numbers.window_all(session("1s")).process(|_, numbers| numbers.sum::<u64>()).sink(file::to_tsv("b"));
    numbers.window_all(count(3)).reduce(|a, b| a + b).with(|_, n| n).sink(file::to_tsv("c"));
    numbers.window_all(global()).trigger(trigger::count(3)).max_by(|n| n % 3).sink(file::to_tsv("d"));
    let (all, late) = numbers.window_all(sliding("2s", "1s")).late_output().fold(0, |sum, n| *sum += n);
    all.union(late).sink(file::to_tsv("e"));
    let (_, only_late) = numbers.window_all(sliding("2s", "1s")).late_output().min_by(|n| *n);
    only_late.sink(file::to_tsv("f"));
    let (in_time, _) = numbers.window_all(sliding("2s", "1s")).late_output().sum(|n| *n);
    in_time.sink(file::to_tsv("g"));
}

#[pipeline(guarantee = at_least_once, time = processing)]
fn by_the_clock() {
    let words = source(range(0..9)).map(|n| n.to_string());
    words
        .key_by(|word| word.as_str())
        .window(tumbling("1s"))
        .trigger(trigger::continuous_processing_time("100ms"))
        .aggregate((aggregate::count(), aggregate::max_by(|word: &String| word.len())))
        .with(|word, _, (count, longest)| (word.to_owned(), count, longest))
        .sink(file::to_tsv("a"));
    words.window_all(session("1s").processing_time()).count().sink(file::to_tsv("b"));
}

#[pipeline(guarantee = at_least_once)]
fn entering() {
    let strategy = bounded(std::time::Duration::from_secs(1));
    let aligned =
        source(range(0..9)).watermarks(monotonous().with_alignment("10s").with_idleness("1m"), |n| *n);
    let entering = source(range(0..9)).watermarks(ingestion());
    let by_a_variable = source(range(0..9)).watermarks(strategy, |n| *n);
    let all = aligned.union(entering, by_a_variable);
    all.window_all(tumbling("1s")).count().sink(file::to_tsv("a"));
}

#[test]
fn compiles() {
    drop((of_all(), by_the_clock(), entering()));
}
