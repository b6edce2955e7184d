use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).flat_map(|n| n + 1).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
