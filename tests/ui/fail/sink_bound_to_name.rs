use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let written = source(range(0..9)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
