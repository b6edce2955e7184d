//! Nexmark: the queries of the benchmark as pipelines, over events that are generated in the job.
//!
//! ```sh
//! cargo run --release --example nexmark -- --query q5 --events 20000000 --parallelism 2
//! ```
//!
//! Prints one line of JSON per query: how many events per second went through, how many records came out, and a checksum of
//! these that depends neither on their order nor on the parallelism. With `--check` a plain program over the same events
//! has to come to the same result. The package `flow-nexmark` is this program, too, and builds without any connector:
//!
//! ```sh
//! cargo run --release -p flow-nexmark -- --query all --check
//! ```

mod suite;

use std::{error::Error, process::ExitCode};

use clap::Parser;
use flow::worker::Stop;
use serde::Serialize;
use suite::{
    checksum::{Checksum, Totals},
    generate::{self, Generator},
    model::Event,
    queries::{Oracle, QUERIES, Query, Run},
    source::Nexmark,
};

/// Runs Nexmark's queries, and prints a line of JSON for each
#[derive(Parser)]
#[command(name = "nexmark")]
struct Args {
    /// The query: q0, q1, .. or `all` for one after the other
    #[arg(long, value_parser = chosen)]
    query: Chosen,
    /// How many events to generate
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    events: u64,
    /// How many subtasks each operator has
    #[arg(long, default_value_t = 1, value_parser = positive)]
    parallelism: usize,
    /// Where events come from
    #[arg(long, value_enum, default_value_t = Generator::Light)]
    generator: Generator,
    /// Compare each result with that of a plain program over the same events
    #[arg(long)]
    check: bool,
    /// Stop in the middle, and go on from the checkpoint with this parallelism
    #[arg(long, value_name = "PARALLELISM", value_parser = positive)]
    rescale: Option<usize>,
}

/// The queries to run.
#[derive(Clone)]
struct Chosen(Vec<&'static Query>);

fn chosen(name: &str) -> Result<Chosen, String> {
    let chosen: Vec<_> = QUERIES.iter().filter(|query| name == "all" || query.name == name).collect();
    if chosen.is_empty() {
        let names: Vec<_> = QUERIES.iter().map(|query| query.name).collect();
        return Err(format!("there is no query `{name}`: choose `all`, or one of {}", names.join(", ")));
    }
    Ok(Chosen(chosen))
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{text}` is not a number of at least 1")),
    }
}

/// What is printed of a query.
#[derive(Serialize)]
struct Line {
    query: &'static str,
    events: u64,
    parallelism: usize,
    seconds: f64,
    events_per_second: f64,
    output_records: u64,
    checksum: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let events = args.check.then(|| generate::events(args.generator, args.events));
    for query in &args.query.0 {
        let line = match run(query, &args) {
            Ok(line) => line,
            Err(error) => return failed(query, &error.to_string()),
        };
        match serde_json::to_string(&line) {
            Ok(line) => println!("{line}"),
            Err(error) => return failed(query, &error.to_string()),
        }
        if let Some(events) = &events
            && let Err(error) = check(query, &line, events)
        {
            return failed(query, &error.to_string());
        }
    }
    ExitCode::SUCCESS
}

/// Compares what the query gave, or gives by another clock, with what it should.
fn check(query: &Query, line: &Line, events: &[Event]) -> Result<(), Box<dyn Error>> {
    let [got, expected] = match query.oracle {
        Oracle::Of(oracle) => {
            [Totals { records: line.output_records, checksum: line.checksum }, oracle(events)]
        }
        Oracle::ByClock(run) => run(events, line.parallelism)?,
    };
    if got == expected {
        return Ok(());
    }
    let text = |Totals { records, checksum }| format!("{records} records with the checksum {checksum}");
    Err(format!("the job gave {}, but the plain program {}", text(got), text(expected)).into())
}

fn failed(query: &Query, what: &str) -> ExitCode {
    eprintln!("error: {}: {what}", query.name);
    ExitCode::FAILURE
}

fn run(query: &Query, args: &Args) -> Result<Line, Box<dyn Error>> {
    let out = Checksum::default();
    let largest = args.parallelism.max(args.rescale.unwrap_or(0));
    let events = Nexmark::new(args.generator, args.events, largest as u64);
    let mut run = Run { parallelism: args.parallelism, ..Run::default() };
    let mut seconds = 0.0;
    let directory = tempfile::tempdir()?;
    if let Some(parallelism) = args.rescale {
        run.checkpoint_dir = Some(directory.path().to_string_lossy().into_owned());
        let first = Nexmark { stop_at: Some((args.events / 2, run.stop.clone())), ..events.clone() };
        seconds += (query.run)(first, out.clone(), &run)?.elapsed.as_secs_f64();
        (run.parallelism, run.stop) = (parallelism, Stop::default());
    }
    seconds += (query.run)(events, out.clone(), &run)?.elapsed.as_secs_f64();
    let Totals { records, checksum } = out.totals();
    Ok(Line {
        query: query.name,
        events: args.events,
        parallelism: run.parallelism,
        seconds,
        events_per_second: args.events as f64 / seconds,
        output_records: records,
        checksum,
    })
}
