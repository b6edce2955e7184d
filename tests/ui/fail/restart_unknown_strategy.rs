use flow::{collection::range, file, pipeline};

#[pipeline(restart(fixed_dely(attempts = 3)))]
fn p() {
    source(range(0..9)).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
