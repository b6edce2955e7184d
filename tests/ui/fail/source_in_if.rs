use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let numbers = if cfg!(debug_assertions) { source(range(0..9)) } else { source(range(0..99)) };
    numbers.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
