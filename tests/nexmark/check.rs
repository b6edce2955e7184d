//! Every query gives what a plain program gives: with one subtask and with several, and also when the job stops in the
//! middle and goes on from its checkpoint at another parallelism.

use std::process::{Command, Output};

/// Without optimization the plain programs take their time.
const EVENTS: &str = if cfg!(debug_assertions) { "100000" } else { "1000000" };

fn nexmark(arguments: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_nexmark"));
    program.args(arguments.split(' ')).output().expect("the program starts")
}

/// The query and how many records it gave, of each line.
fn checked(arguments: &str) -> Vec<(String, u64)> {
    let output = nexmark(&format!("--check --events {EVENTS} {arguments}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let records = line["output_records"].as_u64().expect("a number");
        (line["query"].as_str().expect("a name").to_owned(), records)
    });
    lines.collect()
}

#[test]
fn every_query_agrees_with_its_oracle() {
    let [mut one, mut two] = ["1", "2"]
        .map(|parallelism| checked(&format!("--query all --parallelism {parallelism} --generator nexmark")));
    assert_eq!(one.len(), 21);
    // How many windows of it are over by the clock is different each time.
    one.retain(|(query, _)| query != "q12");
    two.retain(|(query, _)| query != "q12");
    for (query, records) in &one {
        assert!(*records > 0, "{query} gives nothing, which proves nothing");
    }
    assert_eq!(one, two);
}

#[test]
fn a_query_goes_on_from_a_checkpoint_at_another_parallelism() {
    for query in ["q3", "q4", "q5", "q8", "q11", "q16", "q19"] {
        for parallelism in ["--parallelism 1 --rescale 3", "--parallelism 3 --rescale 2"] {
            checked(&format!("--query {query} --generator light {parallelism}"));
        }
    }
}

#[test]
fn mistakes_are_explained() {
    let output = nexmark("--query q10");
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("there is no query `q10`") && errors.contains("q11"), "{errors}");
}
