use std::time::Duration;

use flow::{collection::range, file, pipeline, watermark::monotonous, window::session_with};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).watermarks(monotonous(), |n| *n).key_by(|n| n % 2);
    numbers
        .window(session_with(|n: &u64| Duration::from_secs(*n)))
        .count()
        .sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
