use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).sink(file::to_lines("out")).map(|n| n + 1);
}

fn main() {
    flow::run(p);
}
