use flow::{file, pipeline};

#[path = "../support/ticks.rs"]
mod ticks;
use ticks::Ticks;

#[pipeline]
fn p() {
    source(Ticks).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
