use flow::{file, pipeline};

#[pipeline]
fn p<'a>(input: &'a str) {
    source(file::text(input)).sink(file::to_lines("out"));
}

fn main() {
    p("in");
}
