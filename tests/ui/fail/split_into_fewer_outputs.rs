use flow::{Split2, collection::range, file, pipeline};

#[pipeline]
fn p() {
    let (even, odd, _) = source(range(0..9)).split(|n| if n % 2 == 0 { Split2::First(n) } else { Split2::Second(n) });
    even.union(odd).sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
