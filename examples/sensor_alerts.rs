//! Tells when a sensor was too hot, for how long, and how hot it got.
//!
//! Readings above the limit that are less than 10 seconds apart are one alert: a session window per sensor. The readings
//! may be out of order by 5 seconds, in event time, which is the time of the readings and not that of this machine.
//!
//! ```sh
//! printf 'sensor,time,celsius\nboiler,1000,91\nboiler,4000,95\n' > readings.csv
//! cargo run --release --example sensor_alerts -- --input readings.csv --output alerts
//! ```

use std::process::ExitCode;

use flow::{
    file, pipeline,
    watermark::bounded,
    window::{aggregate::count, aggregate::max, session},
};
use serde::{Deserialize, Serialize};

/// Tells when sensors were too hot.
#[derive(clap::Args, Clone)]
struct Args {
    /// CSV files with a header: sensor, time in milliseconds since 1970, degrees Celsius
    #[arg(long)]
    input: String,
    /// The directory for the alerts: sensor, first and last second, readings, highest temperature
    #[arg(long)]
    output: String,
    /// What is too hot
    #[arg(long, default_value_t = 90.0)]
    limit: f64,
}

/// A line of the input.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reading {
    sensor: String,
    time: i64,
    celsius: f64,
}

#[pipeline]
fn sensor_alerts(args: &Args) {
    let readings =
        source(file::csv::<Reading>(&args.input)).watermarks(bounded("5s"), |reading| reading.time);
    let alerts = readings
        .filter(|reading| reading.celsius > args.limit)
        .key_by(|reading| reading.sensor.as_str())
        .window(session("10s"))
        .aggregate((count(), max(|reading: &Reading| reading.celsius)))
        .with(|sensor, hot, (readings, celsius)| {
            // A session ends a gap after its last reading.
            let (first, last) = (hot.start.as_millis() / 1000, hot.end.as_millis() / 1000 - 10);
            (sensor.to_owned(), first, last, readings, celsius)
        });
    alerts.sink(file::to_tsv(&args.output));
}

fn main() -> ExitCode {
    flow::run(sensor_alerts)
}
