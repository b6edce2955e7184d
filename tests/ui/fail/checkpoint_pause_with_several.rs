use flow::{collection::range, file, pipeline};

#[pipeline(checkpoint(min_pause = "1s", max_concurrent = 2))]
fn p() {
    source(range(0..9)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
