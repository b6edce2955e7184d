use flow::{collection::range, file, pipeline, window::trigger};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).key_by(|n| n % 2);
    numbers.count().trigger(trigger::count(3)).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
