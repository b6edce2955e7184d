use flow::{collection::range, file, pipeline};

#[pipeline(max_parallelism = 8)]
fn p() {
    source(range(0..9)).map(|n| n + 1).parallelism(16).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
