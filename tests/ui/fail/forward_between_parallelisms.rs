use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).parallelism(2).forward().map(|n| n + 1).parallelism(3).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
