use flow::{collection::range, file, pipeline};

#[pipeline]
fn p(&(from, to): &(u64, u64)) {
    source(range(from..to)).sink(file::to_lines("out"));
}

fn main() {
    p(&(0, 9));
}
