use flow::{collection::range, file, pipeline, window::global};

#[pipeline(guarantee = at_least_once)]
fn p() {
    let numbers = source(range(0..9));
    numbers.window_all(global()).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
