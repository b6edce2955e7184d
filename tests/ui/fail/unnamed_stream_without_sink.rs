use flow::{collection::range, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).map(|n| n + 1);
}

fn main() {
    flow::run(p);
}
