use flow::{collection::range, file, pipeline};

#[pipeline]
fn p() {
    let answers = source(range(0..9)).map_async(|n| async move {
        let one = std::rc::Rc::new(1);
        std::future::ready(()).await;
        n + *one
    });
    answers.sink(file::to_lines("out"));
}

fn main() {
    flow::run(p);
}
