//! Records and keys that borrow from the line they came from, through forks, exchanges and state.
#![deny(warnings)]
use flow::{file, pipeline};

struct Word<'a> {
    text: &'a str,
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
}

#[pipeline]
fn p(stop: &[String]) {
    let lines = source(file::text("in"));
    let pairs = lines
        .flat_map(|line| words(line).enumerate())
        .map(|(at, text)| (at, Word { text }))
        .filter(|(_, word)| !stop.iter().any(|stop| stop == word.text))
        .map(|(at, word)| (word.text, at as u64));
    pairs
        .key_by(|(word, at)| (*word, at % 2))
        .count()
        .map(|((word, _), n)| (word, n))
        .sink(file::to_tsv("a"));
    let by_word = pairs.key_by(|(word, _)| *word);
    by_word.min_by(|(_, at)| *at).sink(file::to_tsv("b"));
    by_word.max_by(|(word, at)| (*at, *word)).sink(file::to_tsv("c"));
    by_word.reduce(|a, b| if a.1 > b.1 { a } else { b }).sink(file::to_tsv("d"));
    by_word.fold(String::new(), |all, (word, _)| all.push_str(word)).sink(file::to_tsv("e"));
    by_word.min(|(word, _)| word.len()).sink(file::to_tsv("f"));
    lines.flat_map(|line| line.bytes()).key_by(|byte| Some(*byte)).count().sink(file::to_tsv("g"));
}

#[test]
fn compiles() {
    let _ = p(&["the".to_owned()]);
}
