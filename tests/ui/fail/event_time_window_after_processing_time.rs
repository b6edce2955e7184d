use flow::{collection::range, file, pipeline, window::tumbling};

#[pipeline(guarantee = at_least_once)]
fn p() {
    let counts = source(range(0..9)).window_all(tumbling("1s").processing_time()).count();
    counts.window_all(tumbling("1m")).sum(|n| *n).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
