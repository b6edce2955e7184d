use flow::{collection::range, file, pipeline, watermark::monotonous, window::tumbling};

#[pipeline]
fn p() {
    let a = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    let b = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    let pairs = a.key_by(|n| *n).left_join(b.key_by(|n| *n)).window(tumbling("1s")).with(|_, _, b| *b + 1);
    pairs.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
