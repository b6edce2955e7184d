use flow::{collection::range, file, pipeline};

use std::time::Instant;

#[pipeline]
fn p() {
    source(range(0..9)).key_by(|n| n % 3).fold(Instant::now(), |_, _| ()).map(|(k, _)| k).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
