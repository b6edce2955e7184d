use flow::{collection::range, file, pipeline, watermark::monotonous, window::tumbling};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).watermarks(monotonous(), |n| *n).key_by(|n| n % 2);
    numbers.window(tumbling("1h")).allowed_lateness("1").count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
