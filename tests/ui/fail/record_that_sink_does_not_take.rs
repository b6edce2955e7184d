use flow::{collection::range, file, pipeline};

struct Id(u64);

#[pipeline]
fn p() {
    source(range(0..9)).map(Id).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
