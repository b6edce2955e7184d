use flow::{collection::range, file, pipeline};

#[path = "../support/sums.rs"]
mod sums;

#[pipeline]
fn p() {
    source(range(0..9)).key_by(|n| n.to_string()).process(sums::Same).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
