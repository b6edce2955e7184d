use flow::{collection::range, file, pipeline};

#[derive(Clone, PartialEq, Eq, Hash)]
struct Parity(u64);

#[pipeline]
fn p() {
    source(range(0..9)).key_by(|n| Parity(n % 2)).count().map(|(_, n)| n).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
