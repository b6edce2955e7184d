use flow::{collection::range, file, pipeline, window::tumbling};

#[pipeline(guarantee = at_least_once, time = processing)]
fn p() {
    let numbers = source(range(0..9));
    let (counts, _) = numbers.window_all(tumbling("1m")).late_output().count();
    counts.sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
