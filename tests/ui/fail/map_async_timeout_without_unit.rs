use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).map_async(|n| async move { n + 1 }).timeout("2").sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
