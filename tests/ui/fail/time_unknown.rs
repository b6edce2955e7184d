use flow::{collection::range, file, pipeline, window::count};

#[pipeline(guarantee = at_least_once, time = wall)]
fn p() {
    source(range(0..9)).window_all(count(5)).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
