use flow::{collection::range, file, pipeline, window::count};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).key_by(|n| n % 2);
    let fives = numbers.window(count(5));
    fives.count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
