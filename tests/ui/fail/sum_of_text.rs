use flow::{file, pipeline};

#[pipeline]
fn p() {
    source(file::text("in")).key_by(|line| line.len()).sum(|line| line.to_string()).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
