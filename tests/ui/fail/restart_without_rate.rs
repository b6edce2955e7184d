use flow::{collection::range, file, pipeline};

#[pipeline(restart(failure_rate(max = 3)))]
fn p() {
    source(range(0..9)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
