use flow::{Stream, collection::range, file, pipeline};

#[pipeline]
fn doubled(numbers: Stream<u64>) {
    numbers.map(|n| n * 2)
}

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    doubled(numbers).sink(file::to_lines("out"));
}

fn main() {}
