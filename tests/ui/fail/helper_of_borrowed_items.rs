use flow::{Stream, pipeline};

#[pipeline]
fn trimmed(lines: Stream<&str>) -> Stream<&str> {
    lines.map(|line| line.trim())
}

fn main() {}
