use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    match std::env::args().count() {
        1 => numbers.sink(file::to_lines("out")),
        _ => numbers.sink(file::to_tsv("out")),
    }
}

fn main() {
    flow::run(p);
}
