use flow::{collection::range, file, pipeline, watermark::monotonous, window::count};

#[pipeline]
fn p() {
    let a = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    let b = source(range(0..9)).watermarks(monotonous(), |n| *n as i64);
    a.key_by(|n| *n).join(b.key_by(|n| *n)).window(count(3)).with(|_, a, b| a + b).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
