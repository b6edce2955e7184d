use flow::{collection::range, file, pipeline, window::tumbling};

#[pipeline(guarantee = at_least_once)]
fn p() {
    let numbers = source(range(0..9)).key_by(|n| n % 2);
    numbers.window(tumbling("1m").processing_time()).allowed_lateness("5s").count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
