#[derive(Clone, PartialEq, Eq, Hash, flow::Key)]
struct Word<'a>(&'a str);

fn main() {
    let _ = Word("a");
}
