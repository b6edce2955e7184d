use flow::{collection::range, file, pipeline, watermark::monotonous, window::tumbling};

#[pipeline(mode = batch)]
fn p() {
    let sums = source(range(0..9)).watermarks(monotonous(), |n| *n).key_by(|n| n % 2).sum(|n| *n);
    sums.key_by(|(n, _)| *n).window(tumbling("10s")).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
