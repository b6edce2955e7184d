use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let (a, b, c, d, e) = source(range(0..9)).split(|n| n);
    a.union(b, c, d, e).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
