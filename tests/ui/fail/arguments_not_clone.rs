use flow::{file, pipeline};

struct Args {
    input: String,
}

#[pipeline]
fn p(args: &Args) {
    source(file::text(&args.input)).sink(file::to_lines("out"));
}

fn main() {
    p(&Args { input: String::new() });
}
