use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let rates = source(range(0..9));
    let joined = source(range(0..9)).broadcast_join(rates, |n| *n, |rate| *rate as i32).with(|n, rate| n + rate.unwrap_or(&0));
    joined.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
