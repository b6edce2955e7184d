use flow::{collection::range, file, pipeline, window::tumbling};

#[pipeline]
fn p() {
    let clicks = source(range(0..9));
    clicks.key_by(|n| n % 2).window(tumbling("10s")).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
