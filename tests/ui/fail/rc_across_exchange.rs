use flow::{collection::range, file, pipeline};

use std::rc::Rc;

#[pipeline]
fn p() {
    source(range(0..9)).map(Rc::new).key_by(|n| **n).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
