#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, flow::Key)]
struct Parity(u64);

fn main() {
    let _ = Parity(0);
}
