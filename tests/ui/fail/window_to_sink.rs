use flow::{collection::range, file, pipeline, window::count};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).key_by(|n| n % 2);
    numbers.window(count(5)).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
