use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    numbers.sum(|n| *n).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
