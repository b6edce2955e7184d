use flow::{collection::range, file, pipeline, watermark::monotonous};

#[pipeline]
fn p() {
    let a = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    a.key_by(|n| *n).between("0s", "1s").count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
