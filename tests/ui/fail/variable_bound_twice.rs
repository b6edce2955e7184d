use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let step = 1;
    let numbers = source(range(0..9)).map(|n| n + step);
    let step = 2;
    numbers.map(|n| n * step).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
