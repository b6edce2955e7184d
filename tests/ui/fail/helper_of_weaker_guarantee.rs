#[path = "../support/log.rs"]
mod log;
use flow::{Stream, collection::range, file, pipeline};

#[pipeline(guarantee = at_least_once)]
fn logged(lines: Stream<String>) -> Stream<String> {
    lines.sink(log::Log);
    lines
}

#[pipeline]
fn p() {
    let lines = source(range(0..9)).map(|n| n.to_string());
    logged(lines).sink(file::to_lines("out"));
}

fn main() {}
