use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).key_by(|n| *n).fold(|sum: &mut u64, n| *sum += n).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
