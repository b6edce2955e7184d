use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).union().sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
