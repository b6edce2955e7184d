use flow::pipeline;

#[pipeline]
fn p() {
    println!("no streams here");
}

fn main() {
    flow::run(p);
}
