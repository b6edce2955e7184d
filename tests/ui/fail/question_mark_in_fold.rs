use flow::{file, pipeline};

#[pipeline]
fn p() {
    source(file::text("in")).key_by(|l| l.len()).fold(0, |n, l| *n += l.parse::<u64>()?).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
