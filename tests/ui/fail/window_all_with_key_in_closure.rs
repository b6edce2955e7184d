use flow::{collection::range, file, pipeline, window::count};

#[pipeline(guarantee = at_least_once)]
fn p() {
    let numbers = source(range(0..9));
    numbers.window_all(count(5)).count().with(|key, _, n| (key, n)).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
