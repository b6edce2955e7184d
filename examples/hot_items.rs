//! Tells, every minute, which items were clicked most in the last ten minutes.
//!
//! Clicks are counted per item in windows of ten minutes, of which one ends each minute. What a window gives happened
//! at its end, so the counts of one window are in the same minute, and a window of a minute over all items finds the
//! most clicked ones. Clicks may be out of order by 5 seconds, in event time.
//!
//! ```sh
//! printf 'item,time\ntea,1000\ncoffee,2000\ntea,3000\n' > clicks.csv
//! cargo run --release --example hot_items -- --input clicks.csv --output hot
//! ```

use std::{cmp::Reverse, process::ExitCode};

use flow::{
    file, pipeline,
    watermark::bounded,
    window::{aggregate::top_n, sliding, tumbling},
};
use serde::{Deserialize, Serialize};

/// Tells which items are clicked most.
#[derive(clap::Args, Clone)]
struct Args {
    /// CSV files with a header: item, time in milliseconds since 1970
    #[arg(long)]
    input: String,
    /// The directory for the items: end of the ten minutes in seconds since 1970, rank, item, clicks
    #[arg(long)]
    output: String,
    /// How many items of each window
    #[arg(long, default_value_t = 3)]
    top: usize,
}

/// A line of the input.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Click {
    item: String,
    time: i64,
}

/// The clicks of an item; of those clicked equally often, the first by name is the largest.
type Clicked = (u64, Reverse<String>);

#[pipeline]
fn hot_items(args: &Args) {
    let clicks = source(file::csv::<Click>(&args.input)).watermarks(bounded("5s"), |click| click.time);
    let counts = clicks
        .key_by(|click| click.item.as_str())
        .window(sliding("10m", "1m"))
        .count()
        .map(|(item, clicks)| (clicks, Reverse(item.to_owned())));
    let hottest = counts
        .window_all(tumbling("1m"))
        .aggregate(top_n(args.top, Clicked::clone))
        .with(|minute, top| (minute.end.as_millis() / 1000, top));
    hottest
        .flat_map(|(end, top)| {
            let ranked = top.into_iter().enumerate();
            ranked.map(move |(i, (clicks, Reverse(item)))| (end, i + 1, item, clicks))
        })
        .sink(file::to_tsv(&args.output));
}

fn main() -> ExitCode {
    flow::run(hot_items)
}
