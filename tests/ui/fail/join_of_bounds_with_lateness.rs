use flow::{collection::range, file, pipeline, watermark::monotonous};

#[pipeline]
fn p() {
    let a = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    let b = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    let joined = a.key_by(|n| *n).join(b.key_by(|n| *n)).between("0s", "1s").allowed_lateness("1s").with(|_, a, b| a + b);
    joined.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
