use flow::{file, pipeline};

struct Line<'a>(&'a str);

#[pipeline]
fn p() {
    source(file::text("in")).map(|line| Line(line)).key_by(|line| line.0.len()).count().sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
