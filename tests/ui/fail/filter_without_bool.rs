use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).filter(|n| n % 2).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
