use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    numbers.map(|n| numbers.count() + n).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
