use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let answers = source(range(0..9)).map_async(|n| async move { n + 1 }).capacity(10);
    answers.capacity(20).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
