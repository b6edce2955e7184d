use flow::{collection::range, file, pipeline};

struct Id(u64);

#[pipeline]
fn p() {
    let ids = source(range(0..9)).map(Id);
    ids.map(|id| id.0).sink(file::to_lines("a"));
    ids.map(|id| id.0).sink(file::to_lines("b"));
}

fn main() {
    flow::run(p);
}
