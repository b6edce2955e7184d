use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    source(range(0..9)).map(|n| Ok(n + 1)).on_error(ignore).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
