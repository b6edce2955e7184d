use flow::{Stream, collection::range, pipeline};

#[pipeline]
fn numbers() -> Stream<u64> {
    source(range(0..9))
}

fn main() {}
