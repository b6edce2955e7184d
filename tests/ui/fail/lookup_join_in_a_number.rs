use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).lookup_join(5, |n| *n).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
