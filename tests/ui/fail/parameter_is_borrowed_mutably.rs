use flow::{collection::range, file, pipeline};

#[pipeline]
fn p(n: &mut u64) {
    source(range(0..*n)).sink(file::to_lines("out"));
}

fn main() {
    p(&mut 9);
}
