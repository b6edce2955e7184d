#[flow::pipeline]
struct Job;

fn main() {
    let _ = Job;
}
