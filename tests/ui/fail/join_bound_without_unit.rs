use flow::{collection::range, file, pipeline, watermark::monotonous};

#[pipeline]
fn p() {
    let a = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    let b = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    let pairs = a.key_by(|n| *n).interval_join(b.key_by(|n| *n)).between("-5", "1s").with(|_, a, b| a + b);
    pairs.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
