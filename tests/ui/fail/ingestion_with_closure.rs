use flow::{collection::range, file, pipeline, watermark::ingestion, window::tumbling};

#[pipeline(guarantee = at_least_once)]
fn p() {
    let numbers = source(range(0..9)).watermarks(ingestion(), |n| *n);
    numbers.window_all(tumbling("1m")).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
