use flow::{file, pipeline};

#[pipeline]
fn p() {
    source(file::text("in")).key_by(|line| line.parse::<u64>()?).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
