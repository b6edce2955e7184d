use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let keyed = source(range(0..9)).key_by(|n| n % 3);
    keyed.count().uid("total").sink(file::to_tsv("counts"));
    keyed.sum(|n| *n).uid("total").sink(file::to_tsv("sums"));
}

fn main() {
    flow::run(p);
}
