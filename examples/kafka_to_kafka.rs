//! Kafka to Kafka, exactly once: reads orders as JSON, drops those without a price, and writes what each is worth, by
//! customer.
//!
//! A reader that asks for committed records (`isolation.level=read_committed`) sees each result once, whatever was killed
//! in between.
//!
//! ```sh
//! cargo run --release --example kafka_to_kafka -- --brokers localhost:9092 --input orders --output totals \
//!     --checkpoint-dir /var/lib/totals
//! ```

use std::process::ExitCode;

use flow::{
    kafka::{self, AsJson, Compression, Record, Start},
    pipeline,
};
use serde::{Deserialize, Serialize};

/// Writes what orders are worth.
#[derive(clap::Args, Clone)]
struct Args {
    /// Kafka brokers, HOST:PORT[,HOST:PORT..]
    #[arg(long)]
    brokers: String,
    /// The topic of the orders
    #[arg(long)]
    input: String,
    /// The topic for the results, which has to exist
    #[arg(long)]
    output: String,
    /// Stop at the records that the topic has at the start
    #[arg(long)]
    bounded: bool,
}

#[derive(Deserialize)]
struct Order {
    id: u64,
    customer: String,
    pieces: u64,
    /// In cents.
    price: Option<u64>,
}

#[derive(Serialize)]
struct Total {
    order: u64,
    cents: u64,
}

#[pipeline(guarantee = exactly_once, checkpoint = "1s")]
fn kafka_to_kafka(args: &Args) {
    let orders = source(
        kafka::json::<Order>(&args.input)
            .brokers(&args.brokers)
            .group("kafka-to-kafka")
            .start(Start::Earliest)
            .bounded_if(args.bounded),
    );

    let totals = orders.filter_map(|order| {
        let cents = order.pieces * order.price?;
        let total = Total { order: order.id, cents };
        Some(Record::new(AsJson(total)).key(order.customer).header("currency", "EUR"))
    });

    totals.sink(kafka::to(&args.output).brokers(&args.brokers).compression(Compression::Lz4));
}

fn main() -> ExitCode {
    flow::run(kafka_to_kafka)
}
