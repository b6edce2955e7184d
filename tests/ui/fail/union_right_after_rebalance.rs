use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9)).rebalance();
    let more = source(range(0..9));
    more.union(numbers).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
