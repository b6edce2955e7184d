use flow::{file, pipeline};

#[pipeline]
fn p() {
    source().sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
