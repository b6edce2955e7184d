use flow::{collection::range, file, pipeline};

#[pipeline(checkpoint(intervall = "10s"))]
fn p() {
    source(range(0..9)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
