use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let (small, large) = source(range(0..9)).map(|n| (n, n + 100));
    small.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
