use flow::{collection::range, file, pipeline};

#[path = "../support/sums.rs"]
mod sums;

#[pipeline]
fn p() {
    let (evens, odds) = source(range(0..9)).key_by(|n| n % 3).process(sums::Evens);
    evens.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
