use flow::{collection::range, file, pipeline, watermark::monotonous, window::session};

#[pipeline(guarantee = at_least_once)]
fn p() {
    let numbers = source(range(0..9)).watermarks(monotonous(), |n| *n).key_by(|n| n % 2);
    numbers.window(session("1m")).fold(0u64, |sum, n| *sum += n).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
