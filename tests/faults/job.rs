//! The job that the chaos runner starts, lets die, and starts again: a running count per key, into one of the sinks, or
//! what is made of event time.

mod event_time;
#[allow(dead_code, reason = "what has to come out is the runner's matter")]
mod results;
#[path = "../../examples/two_phase_sink/spool.rs"]
mod spool;

use std::process::ExitCode;

use flow::{Stream, collection, file, kafka, pipeline, sql, testing::failpoints};

/// A running count per key, into one of the sinks.
#[derive(clap::Args, Clone)]
struct Args {
    /// How many records.
    #[arg(long)]
    records: u64,
    /// How many per second, of all subtasks together.
    #[arg(long)]
    rate: u64,
    /// A directory, a database URL or a topic.
    #[arg(long)]
    target: String,
    /// Of Kafka.
    #[arg(long, default_value = "")]
    brokers: String,
}

/// How many keys there are; `runner/target.rs` knows it too.
const KEYS: u64 = 101;

/// Each key's counts, one after the other, as one number each: what is lost or repeated in state or output shows.
#[pipeline]
fn counted(numbers: Stream<u64>) -> Stream<i64> {
    numbers.key_by(|n| n % KEYS).count().map(|(key, count)| (key * 1_000_000 + count) as i64)
}

#[pipeline]
fn files(args: &Args) {
    let numbers = source(collection::generate(args.rate, |n| n).splits(4).take(args.records));
    counted(numbers).map(|n| n.to_string()).sink(file::to_lines(&args.target));
}

#[pipeline]
fn two_phase_commit(args: &Args) {
    let numbers = source(collection::generate(args.rate, |n| n).splits(4).take(args.records));
    counted(numbers).map(|n| format!("{n}\n")).sink(spool::Spool(args.target.clone().into()));
}

fn table(args: &Args) -> sql::Insert {
    sql::insert(&*args.target, "chaos").columns(["n"]).prepare("CREATE TABLE IF NOT EXISTS chaos (n BIGINT)")
}

#[pipeline]
fn ledger(args: &Args) {
    let numbers = source(collection::generate(args.rate, |n| n).splits(4).take(args.records));
    counted(numbers).map(|n| (n,)).sink(table(args));
}

#[pipeline]
fn prepared(args: &Args) {
    let numbers = source(collection::generate(args.rate, |n| n).splits(4).take(args.records));
    counted(numbers).map(|n| (n,)).sink(table(args).prepared_transactions());
}

#[pipeline]
fn topic(args: &Args) {
    let numbers = source(collection::generate(args.rate, |n| n).splits(4).take(args.records));
    counted(numbers).map(|n| n.to_string()).sink(kafka::to(&args.target).brokers(&args.brokers));
}

fn main() -> ExitCode {
    if let Err(error) = failpoints::from_environment() {
        eprintln!("error: {error}");
        return ExitCode::from(2);
    }
    match std::env::var("FLOW_CHAOS_SINK").as_deref() {
        Ok("files") => flow::run(files),
        Ok("two_phase_commit") => flow::run(two_phase_commit),
        Ok("ledger") => flow::run(ledger),
        Ok("prepared") => flow::run(prepared),
        Ok("event_time") => flow::run(event_time::event_time),
        Ok("topic") => flow::run(topic),
        other => {
            eprintln!("error: FLOW_CHAOS_SINK is {other:?}, and no sink");
            ExitCode::from(2)
        }
    }
}
