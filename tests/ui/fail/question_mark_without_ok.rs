use flow::{file, pipeline};

#[pipeline]
fn p() {
    source(file::text("in")).map(|line| line.parse::<u64>()?).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
