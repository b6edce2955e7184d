use flow::{collection::range, file, pipeline};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Id(u64);

#[pipeline]
fn p() {
    source(range(0..9)).key_by(|n| n % 3).max(|n| Id(*n)).map(|(k, _)| k).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
