use flow::{Split2, collection::range, file, pipeline};

#[pipeline]
fn p() {
    let (even, odd) = source(range(0..9)).split(|n| if n % 2 == 0 { Split2::First(n) } else { Split2::Second(n) });
    even.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
