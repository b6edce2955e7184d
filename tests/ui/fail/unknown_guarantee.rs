use flow::{collection::range, file, pipeline};

#[pipeline(guarantee = exactly_one)]
fn p() {
    source(range(0..9)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
