use flow::{collection::range, file, pipeline, watermark::monotonous, window::sliding};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).watermarks(monotonous(), |n| *n).key_by(|n| n % 2);
    numbers.window(sliding("10s", "0s")).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
