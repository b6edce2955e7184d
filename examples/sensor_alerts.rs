//! Tells when a sensor was too hot, for how long, and how hot it got.
//!
//! Readings above the limit that are less than 10 seconds apart are one alert: a session window per sensor. The readings
//! may be out of order by 5 seconds, in event time, which is the time of the readings and not that of this machine. What
//! comes later goes to an output of its own.
//!
//! ```sh
//! printf 'sensor,time,celsius\nboiler,1000,91\nboiler,4000,95\n' > readings.csv
//! cargo run --release --example sensor_alerts -- --input readings.csv --output alerts --late late
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
    /// The directory for readings that came too late for their alert: sensor, time, degrees
    #[arg(long, default_value = "late")]
    late: String,
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
    let (alerts, late) = readings
        .filter(|reading| reading.celsius > args.limit)
        .key_by(|reading| reading.sensor.as_str())
        .window(session("10s"))
        .late_output()
        .aggregate((count(), max(|reading: &Reading| reading.celsius)))
        .with(|sensor, hot, (readings, celsius)| {
            // A session ends a gap after its last reading.
            let (first, last) = (hot.start.as_millis() / 1000, hot.end.as_millis() / 1000 - 10);
            (sensor.to_owned(), first, last, readings, celsius)
        });
    alerts.sink(file::to_tsv(&args.output));
    // Nothing is lost: what is too late for an alert is there to be looked at.
    late.map(|reading| (reading.sensor, reading.time, reading.celsius)).sink(file::to_tsv(&args.late));
}

fn main() -> ExitCode {
    flow::run(sensor_alerts)
}
