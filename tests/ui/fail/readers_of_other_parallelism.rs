use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let keyed = source(range(0..9)).key_by(|n| n % 3);
    keyed.count().parallelism(2).sink(file::to_tsv("counts"));
    keyed.sum(|n| *n).parallelism(3).sink(file::to_tsv("sums"));
}

fn main() {
    flow::run(p);
}
