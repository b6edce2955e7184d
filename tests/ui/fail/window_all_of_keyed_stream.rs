use flow::{collection::range, file, pipeline, window::count};

#[pipeline(guarantee = at_least_once)]
fn p() {
    let numbers = source(range(0..9)).key_by(|n| n % 2);
    numbers.window_all(count(5)).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
