//! Arguments, copies and owned variables, captured by closures of several chains.
#![deny(warnings)]
use flow::{collection::range, file, pipeline};

#[derive(Clone)]
struct Args {
    prefix: String,
    least: u64,
}

#[pipeline]
fn p(args: &Args, step: u64, out: String) {
    let suffix = String::from("!");
    let names = vec!["a", "b", "c"];
    let mut seen = 0u64;
    let mut last = None;
    let numbers = source(range(args.least..99))
        .inspect(move |_| seen += 1)
        .filter(|n| *n >= args.least)
        .map(|n| n + step);
    let labels = numbers.rebalance().map(|n| {
        last = Some(n);
        format!("{}{n}{suffix}{}", args.prefix, names[n as usize % names.len()])
    });
    labels.filter(move |label| label.ends_with(&suffix)).sink(file::to_lines(&out));
    numbers
        .key_by(|n| n % step)
        .count()
        .map(|(key, n)| format!("{}{key}{n}", args.prefix))
        .sink(file::to_lines(out));
}

#[test]
fn compiles() {
    let _ = p(&Args { prefix: String::new(), least: 1 }, 2, String::new());
}
