//! Counts the words of text files.
use std::process::ExitCode;

use flow::{file, pipeline};

/// Counts the words of text files.
#[derive(clap::Args, Clone)]
struct Args {
    /// A file, a directory or a glob; `.gz` and `.zst` are unpacked
    #[arg(long)]
    input: String,
    /// The directory for the counts
    #[arg(long)]
    output: String,
}

#[pipeline(mode = batch)]
fn word_count(args: &Args) {
    let words = source(file::text(&args.input))
        .flat_map(|line| line.split_whitespace())
        .filter(|word| !word.is_empty())
        .map(|word| (word, 1u64));
    let counts = words.key_by(|(word, _)| *word).sum(|(_, n)| *n);
    counts.sink(file::to_tsv(&args.output));
}

fn main() -> ExitCode {
    flow::run(word_count)
}
