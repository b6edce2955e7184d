use flow::{collection::range, file, pipeline};

#[pipeline]
fn p(mut n: u64) {
    n += 1;
    source(range(0..n)).sink(file::to_lines("out"));
}

fn main() {
    p(9);
}
