use flow::{file, pipeline};

#[derive(Clone)]
struct Line<'a>(&'a str);

#[pipeline]
fn p() {
    source(file::text("in")).map(|line| Line(line)).key_by(|line| line.0.len()).reduce(|a, _| a).map(|line| line.0).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
