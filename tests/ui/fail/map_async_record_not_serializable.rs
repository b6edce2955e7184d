use flow::{collection::range, file, pipeline};

#[derive(Clone)]
struct Question(u64);

#[pipeline]
fn p() {
    source(range(0..9)).map(Question).map_async(|q| async move { q.0 }).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
