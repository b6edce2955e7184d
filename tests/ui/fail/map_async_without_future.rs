use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).map_async(|n| n + 1).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
