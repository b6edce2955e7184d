//! A sink of one's own with two-phase commit: invoices, each checkpoint's in one file of a spool directory that
//! another program empties.
//!
//! ```text
//! cargo run --release --example two_phase_sink -- --spool DIR [--checkpoint-dir D --checkpoint-interval 500ms]
//! ```
//!
//! Kill it with -9 and run it again: every invoice is in the spool once.

mod spool;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use flow::{collection, pipeline};
use spool::Spool;

#[derive(Clone, Parser)]
struct Args {
    /// The directory to write into.
    #[arg(long)]
    spool: PathBuf,
    /// How many orders to invoice.
    #[arg(long, default_value_t = 1_000_000)]
    orders: u64,
}

#[pipeline(guarantee = exactly_once, checkpoint = "1s")]
fn two_phase_sink(args: &Args) {
    source(collection::range(0..args.orders))
        .map(|order| format!("invoice {order}: {} EUR\n", order % 1000))
        .sink(Spool(args.spool.clone()));
}

fn main() -> ExitCode {
    flow::run(two_phase_sink)
}
