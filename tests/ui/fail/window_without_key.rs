use flow::{collection::range, file, pipeline, watermark::monotonous, window::tumbling};

#[pipeline]
fn p() {
    let clicks = source(range(0..9)).watermarks(monotonous(), |n| *n);
    clicks.window(tumbling("10s")).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
