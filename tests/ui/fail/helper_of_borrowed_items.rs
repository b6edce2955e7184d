use flow::{Stream, file, pipeline};

#[pipeline]
fn trimmed(lines: Stream<&str>) -> Stream<&str> {
    lines.map(|line| line.trim())
}

#[pipeline]
fn p() {
    let lines = source(file::text("in"));
    trimmed(lines).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
