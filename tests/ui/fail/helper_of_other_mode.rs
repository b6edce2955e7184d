use flow::{Stream, collection::range, file, pipeline};

#[pipeline]
fn counted(numbers: Stream<u64>) -> Stream<(u64, u64)> {
    numbers.key_by(|n| n % 3).count()
}

#[pipeline(mode = batch)]
fn p() {
    let numbers = source(range(0..9));
    counted(numbers).sink(file::to_tsv("out"));
}

fn main() {}
