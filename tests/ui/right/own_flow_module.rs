//! A module of the crate's own that is called `flow`, and a pipeline called like a prelude function.
#![deny(warnings)]
mod flow {
    pub(crate) fn key(n: &u64) -> u64 {
        *n
    }
}

#[::flow::pipeline]
pub(crate) fn drop() {
    source(::flow::collection::range(0..9)).key_by(flow::key).count().sink(::flow::file::to_tsv("out"));
}

#[test]
fn compiles() {
    let _ = drop();
}
