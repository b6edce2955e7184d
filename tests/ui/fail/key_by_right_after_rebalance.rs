use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).rebalance().key_by(|n| n % 3).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
