use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let rates = source(range(0..9));
    source(range(0..9)).broadcast_join(rates, |n| *n, |n| *n).with(|_, n, _| n).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
