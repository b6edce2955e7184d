use flow::{collection::range, file, pipeline};

#[path = "../support/sums.rs"]
mod sums;

#[pipeline]
fn p() {
    let other = source(range(0..9));
    source(range(0..9)).key_by(|n| n % 3).connect(other).process(sums::Both).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
