use flow::{collection::range, file, pipeline, watermark::monotonous, window::tumbling};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).watermarks(monotonous(), |n| n.to_string());
    numbers.key_by(|n| n % 2).window(tumbling("1h")).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
