//! The smallest pipelines: without arguments, without a name, from source to sink; and `flow::source`, spelled out.
#![deny(warnings)]
use std::process::ExitCode;

#[flow::pipeline]
fn smallest() {
    flow::source(flow::collection::range(0..9)).sink(flow::file::to_lines("out"));
}

#[flow::pipeline]
fn parenthesized() {
    (source(flow::collection::range(0..9)).map(|n| n + 1)).sink(flow::file::to_lines("out"))
}

#[flow::pipeline]
fn statements() {
    const LAST: u64 = 9;
    fn next(n: u64) -> u64 {
        n + 1
    }
    let first = std::env::args().count() as u64;
    let numbers = source(flow::collection::range(first..LAST));
    if first > LAST {
        println!("nothing to do");
    }
    numbers.map(next).sink(flow::file::to_lines("out"));
}

#[test]
fn compiles() {
    let _ = (smallest(), parenthesized());
    let _main: fn() -> ExitCode = || flow::run(statements);
}
