use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let uid = "numbers";
    source(range(0..9)).uid(uid).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
