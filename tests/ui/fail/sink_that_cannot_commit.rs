use flow::{collection::range, pipeline};

#[path = "../support/log.rs"]
mod log;
use log::Log;

#[pipeline(guarantee = exactly_once)]
fn p() {
    source(range(0..9)).sink(Log);
}

fn main() {
    flow::run(p);
}
