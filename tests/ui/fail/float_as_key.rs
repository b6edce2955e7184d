use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).map(|n| n as f64).key_by(|x| *x).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
