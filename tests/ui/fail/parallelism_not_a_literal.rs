use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let n = 2;
    source(range(0..9)).map(|n| n + 1).parallelism(n).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
