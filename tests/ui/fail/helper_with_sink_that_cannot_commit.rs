#[path = "../support/log.rs"]
mod log;
use flow::{Stream, pipeline};

#[pipeline]
fn logged(lines: Stream<String>) -> Stream<String> {
    lines.sink(log::Log);
    lines
}

fn main() {}
