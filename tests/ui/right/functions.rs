//! Functions, calls that make functions, and variables that hold functions, instead of closures.
#![deny(warnings)]
use flow::{BoxError, collection::range, file, pipeline};

fn double(n: u64) -> u64 {
    n * 2
}

fn is_even(n: &u64) -> bool {
    n.is_multiple_of(2)
}

fn add(step: u64) -> impl FnMut(u64) -> u64 + Clone {
    move |n| n + step
}

fn key(n: &u64) -> u64 {
    *n
}

fn parse(text: String) -> Result<u64, BoxError> {
    Ok(text.parse()?)
}

mod deep {
    pub fn first(n: u64) -> Option<u64> {
        (n > 0).then_some(n)
    }
}

#[pipeline]
fn p() {
    let halve = |n: u64| n / 2;
    source(range(0..9))
        .map(double)
        .filter(is_even)
        .map(add(3))
        .map(halve)
        .filter_map(deep::first)
        .flat_map(Some)
        .map(|n| n.to_string())
        .map(parse)
        .on_error(skip)
        .key_by(key)
        .reduce(u64::max)
        .key_by(key)
        .sum(u64::clone)
        .sink(file::to_tsv("out"));
}

#[test]
fn compiles() {
    let _ = p();
}
