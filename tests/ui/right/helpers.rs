//! Helper functions from stream to stream: with arguments, called twice, chained, from another module, of two streams.
#![deny(warnings)]
use flow::{Stream, collection::range, file, pipeline};

/// Multiplies.
#[pipeline]
fn times(numbers: Stream<u64>, factor: u64, label: &str) -> Stream<(String, u64)> {
    numbers.map(|n| (label.to_owned(), n * factor))
}

mod math {
    use flow::{Stream, pipeline};

    /// Pairs of what one and the other have.
    #[pipeline]
    pub(crate) fn merged(offset: u64, left: Stream<u64>, right: Stream<(String, u64)>) -> Stream<u64> {
        let left_of = left.map(|n| n + offset);
        let numbers = right.map(|(_, n)| n);
        left_of.union(numbers).rebalance()
    }

    #[pipeline]
    pub(crate) fn same(numbers: Stream<u64>) -> Stream<u64> {
        numbers
    }
}

#[pipeline]
fn p(factor: u64, label: &str) {
    let numbers = source(range(0..9));
    let doubled = times(numbers, 2, "double");
    let more = times(numbers, factor, label);
    let all = math::merged(7, numbers, doubled);
    let again = math::same(all);
    math::same(again).filter(|n| n % 2 == 0).sink(file::to_lines("a"));
    doubled.union(more).key_by(|(label, _)| label.clone()).count().sink(file::to_tsv("b"));
    times(again, factor, label).key_by(|(label, _)| label.clone()).sum(|(_, n)| *n).sink(file::to_tsv("c"));
}

#[test]
fn compiles() {
    let _ = p(3, "more");
}
