use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    let words = source(range(0..9)).map(|n| n.to_string());
    numbers.union(words).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
