use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    if std::env::args().count() > 1 {
        numbers.sink(file::to_lines("out"));
    }
}

fn main() {
    flow::run(p);
}
