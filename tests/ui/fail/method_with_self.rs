use flow::{collection::range, file, pipeline};

struct Jobs;

impl Jobs {
    #[pipeline]
    fn p(&self) {
        source(range(0..9)).sink(file::to_lines("out"));
    }
}

fn main() {
    Jobs.p();
}
