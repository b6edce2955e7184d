use flow::{collection::generate, file, pipeline};

#[pipeline(mode = batch)]
fn p() {
    source(generate(100, |n| n)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
