use flow::{collection::range, file, pipeline};

struct Limit(u64);

#[pipeline]
fn p() {
    let limit = Limit(3);
    let numbers = source(range(0..9)).filter(|n| *n < limit.0).rebalance();
    numbers.map(|n| n + limit.0).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
