use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    for n in 0..3 {
        numbers.filter(|m| m % 3 == n).sink(file::to_lines("out"));
    }
}

fn main() {
    flow::run(p);
}
