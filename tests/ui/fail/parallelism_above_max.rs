use flow::{collection::range, file, pipeline};

#[pipeline(max_parallelism = 8, parallelism = 16)]
fn p() {
    source(range(0..9)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
