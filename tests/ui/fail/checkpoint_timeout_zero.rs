use flow::{collection::range, file, pipeline};

#[pipeline(checkpoint(interval = "10s", timeout = "0s"))]
fn p() {
    source(range(0..9)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
