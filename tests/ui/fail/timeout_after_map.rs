use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).map(|n| n + 1).timeout("2s").sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
