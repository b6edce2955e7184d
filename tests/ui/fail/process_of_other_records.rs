use flow::{collection::range, file, pipeline};

#[path = "../support/sums.rs"]
mod sums;

#[pipeline]
fn p() {
    source(range(0..9)).map(|n| n as i64).key_by(|n| *n as u64).process(sums::Same).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
