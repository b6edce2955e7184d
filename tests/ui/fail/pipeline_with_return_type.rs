use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() -> u64 {
    source(range(0..9)).sink(file::to_lines("out"));
    9
}

fn main() {
    flow::run(p);
}
