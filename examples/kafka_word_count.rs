//! Counts the words of a Kafka topic in a SQL table, as they come.
//!
//! ```sh
//! cargo run --release --example kafka_word_count -- --brokers localhost:9092 --topic texts \
//!     --database-url postgres://user:password@localhost/words --checkpoint-dir /var/lib/word-count
//! ```

use std::process::ExitCode;

use flow::{
    kafka::{self, Start},
    pipeline, sql,
};

/// Counts the words of a topic.
#[derive(clap::Args, Clone)]
struct Args {
    /// Kafka brokers, HOST:PORT[,HOST:PORT..]
    #[arg(long)]
    brokers: String,
    /// The topic: each record's value is a line of text
    #[arg(long)]
    topic: String,
    /// The database of table `word_counts(word, n)`, which is created if need be: sqlite:PATH, postgres://.., mysql://..
    #[arg(long)]
    database_url: String,
    /// Stop at the records that the topic has at the start
    #[arg(long)]
    bounded: bool,
}

impl Args {
    /// The table, if it is not there yet. MariaDB and MySQL ignore case unless told otherwise.
    fn table(&self) -> &'static str {
        if self.database_url.starts_with("mysql") || self.database_url.starts_with("mariadb") {
            "CREATE TABLE IF NOT EXISTS word_counts \
             (word VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, n BIGINT NOT NULL)"
        } else {
            "CREATE TABLE IF NOT EXISTS word_counts (word VARCHAR(255) PRIMARY KEY, n BIGINT NOT NULL)"
        }
    }
}

#[pipeline(guarantee = exactly_once, checkpoint = "1s")]
fn kafka_word_count(args: &Args) {
    let words = source(
        kafka::lines(&args.topic)
            .brokers(&args.brokers)
            .group("kafka-word-count")
            .start(Start::Earliest)
            .bounded_if(args.bounded),
    )
    .flat_map(|line| line.split_whitespace());

    let counts = words.key_by(|word| *word).count();

    counts.sink(
        sql::upsert(&args.database_url, "word_counts")
            .key(["word"])
            .columns(["word", "n"])
            .prepare(args.table()),
    );
}

fn main() -> ExitCode {
    flow::run(kafka_word_count)
}
