use flow::{Split2, collection::range, file, pipeline};

#[pipeline]
fn p() {
    let (low, _) = source(range(0..9)).split(|n| if n < 5 { Split2::First(n) } else { Split2::Second(n) });
    low.uid("low").sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
