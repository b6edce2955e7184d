use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).key_by(|n| n % 2);
    numbers.count().with(|key, _, n| (key, n)).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
