use flow::{Stream, pipeline, window::tumbling};

#[pipeline]
fn per_hour(numbers: Stream<u64>) -> Stream<(u64, u64)> {
    numbers.key_by(|n| n % 2).window(tumbling("1h")).count()
}

fn main() {
    let _ = per_hour;
}
