use flow::{collection::range, file, pipeline};

#[derive(serde::Serialize, serde::Deserialize)]
struct Id(u64);

#[pipeline]
fn p() {
    source(range(0..9)).map(Id).key_by(|id| id.0 % 3).reduce(|a, _| a).map(|id| id.0).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
