use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let users = std::collections::HashMap::from([(1u64, 2u64)]);
    source(range(0..9)).lookup_join(users, |n| *n).on_timeout(|n| n).sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
