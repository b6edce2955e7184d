//! A name used several times: of a source, of a keyed stream, of an aggregate, of an exchange; and united again.
#![deny(warnings)]
use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    let keyed = numbers.key_by(|n| n % 3);
    let sums = keyed.sum(|n| *n);
    let counts = keyed.count();
    sums.union(counts).map(|(key, n)| key + n).sink(file::to_lines("a"));
    sums.sink(file::to_tsv("b"));
    let spread = numbers.rebalance();
    let odd = spread.filter(|n| n % 2 == 1);
    let even = spread.filter(|n| n % 2 == 0).map(|n| n + 1);
    odd.union(even, numbers).key_by(|n| *n).count().sink(file::to_tsv("c"));
    even.sink(file::to_lines("d"));
}

#[pipeline(mode = batch)]
fn batch() {
    let keyed = source(range(0..9)).key_by(|n| n % 3);
    let sums = keyed.sum(|n| *n);
    let rest = keyed.reduce(|a, b| a + b).key_by(|n| n % 2).max_by(|n| *n);
    sums.map(|(_, n)| n).union(rest).sink(file::to_lines("a"));
    sums.key_by(|(_, sum)| *sum).count().sink(file::to_tsv("b"));
}

#[test]
fn compiles() {
    let _ = (p(), batch());
}
