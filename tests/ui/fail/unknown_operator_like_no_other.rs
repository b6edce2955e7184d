use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).with_latest_from(3).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
