//! Counts the words that come over a TCP connection, as they come.
//!
//! ```sh
//! nc -lk 9999 &
//! cargo run --release --example socket_word_count -- --address localhost:9999
//! ```

use std::process::ExitCode;

use flow::{pipeline, print, socket};

/// Counts the words of a connection.
#[derive(clap::Args, Clone)]
struct Args {
    /// Where to connect to, HOST:PORT
    #[arg(long, default_value = "localhost:9999")]
    address: String,
}

// A socket forgets what it has delivered, so nothing better than at most once can be had of it.
#[pipeline(guarantee = at_most_once)]
fn socket_word_count(args: &Args) {
    source(socket::socket_text(&args.address))
        .flat_map(|line| line.split_whitespace())
        .map(|word| (word, 1u64))
        .key_by(|(word, _)| *word)
        .sum(|(_, n)| *n)
        .sink(print::print());
}

fn main() -> ExitCode {
    flow::run(socket_word_count)
}
