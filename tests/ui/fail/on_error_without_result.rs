use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).map(|n| n + 1).on_error(skip).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
