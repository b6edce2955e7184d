use flow::{collection::range, file, pipeline, watermark::monotonous, window::tumbling};

#[pipeline]
fn p() {
    let a = source(range(0..9)).watermarks(monotonous(), |n| *n as i64).key_by(|n| *n);
    a.join(a).window(tumbling("1s")).with(|_, a, b| a + b).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
