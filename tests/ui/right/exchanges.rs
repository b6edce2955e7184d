//! All exchanges, chaining, parallelisms and names.
#![deny(warnings)]
use flow::{collection::range, file, pipeline};

#[pipeline(name = "all exchanges", guarantee = at_least_once, checkpoint = "500ms", parallelism = 2, max_parallelism = 16)]
fn p() {
    let numbers = source(range(0..9)).uid("numbers").name("the numbers").parallelism(1);
    numbers
        .rebalance()
        .map(|n| n + 1)
        .rescale()
        .map(|n| n.to_string())
        .parallelism(4)
        .sink(file::to_lines("a"));
    numbers
        .broadcast()
        .filter(|n| *n > 1)
        .global()
        .map(|n| n + 1)
        .parallelism(1)
        .sink(file::to_lines("b"))
        .parallelism(1);
    numbers
        .partition_custom(|key, subtasks| key % subtasks, |n| *n as usize)
        .map(|n| n + 1)
        .disable_chaining()
        .forward()
        .map(|n| n + 1)
        .start_new_chain()
        .sink(file::to_lines("c"))
        .uid("out");
    numbers
        .partition_custom(|key: f64, subtasks| key as usize % subtasks, |n| *n as f64)
        .sink(file::to_lines("d"));
}

#[test]
fn compiles() {
    let _ = p();
}
