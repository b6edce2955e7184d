use std::rc::Rc;

use flow::{file, pipeline};

#[pipeline]
fn p(input: Rc<str>) {
    source(file::text(&*input)).sink(file::to_lines("out"));
}

fn main() {
    p(Rc::from("in"));
}
