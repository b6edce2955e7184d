use flow::{collection::range, file, pipeline, window::tumbling};

#[pipeline(guarantee = at_least_once, mode = batch)]
fn p() {
    let numbers = source(range(0..9));
    numbers.window_all(tumbling("1m").processing_time()).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
