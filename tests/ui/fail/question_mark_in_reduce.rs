use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).key_by(|n| n % 3).reduce(|a, b| a.checked_add(b)?).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
