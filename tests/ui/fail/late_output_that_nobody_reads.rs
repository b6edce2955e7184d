use flow::{collection::range, file, pipeline, watermark::monotonous, window::tumbling};

#[pipeline(guarantee = at_least_once)]
fn p() {
    let numbers = source(range(0..9)).watermarks(monotonous(), |n| *n);
    let (counts, late) = numbers.window_all(tumbling("1m")).late_output().count();
    counts.sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
