use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).uid("my numbers").sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
