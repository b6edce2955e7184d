//! A source of your own: sensors that are asked for their temperature again and again.
//!
//! ```sh
//! cargo run --release --example custom_source -- --sensors 4 --readings 10
//! ```

use std::{process::ExitCode, time::Duration};

use flow::{
    BoxError, pipeline, print,
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader, Split},
};
use serde::{Deserialize, Serialize};

/// The highest temperature of each sensor so far.
#[derive(clap::Args, Clone)]
struct Args {
    /// How many sensors there are
    #[arg(long, default_value_t = 4)]
    sensors: u32,
    /// How often each is read
    #[arg(long, default_value_t = 10)]
    readings: u64,
    /// Milliseconds between two readings of a sensor
    #[arg(long, default_value_t = 20)]
    pause: u64,
}

/// What to read: a description, until the job opens it.
struct Sensors {
    sensors: u32,
    readings: u64,
    pause: Duration,
}

/// A split is a sensor, and its position the number of the next reading. This is what checkpoints remember.
#[derive(Clone, Serialize, Deserialize)]
struct Sensor {
    number: u32,
    next: u64,
}

impl Split for Sensor {
    fn id(&self) -> String {
        format!("sensor-{}", self.number)
    }
    fn position(&self) -> String {
        format!("reading {}", self.next)
    }
}

/// A record. It needs no more than the operators ask of it: to cross to another subtask it has to be serializable.
#[derive(Clone, Serialize, Deserialize)]
struct Reading {
    sensor: u32,
    celsius: f64,
}

/// Records on their way from the reader to the chain.
#[derive(Default)]
struct Readings(Vec<Reading>);

impl Batch for Readings {
    type Item<'a> = Reading;

    fn records(&mut self) -> impl Iterator<Item = Reading> {
        self.0.drain(..)
    }
}

impl Source for Sensors {
    type Split = Sensor;
    type Batch = Readings;
    type Reader = SensorReader;

    async fn discover(&self, _restored: bool) -> Result<Vec<Sensor>, BoxError> {
        Ok((0..self.sensors).map(|number| Sensor { number, next: 0 }).collect())
    }

    async fn open(&self, _cx: SourceContext, splits: Vec<Sensor>) -> Result<SensorReader, BoxError> {
        Ok(SensorReader { sensors: splits, readings: self.readings, pause: self.pause })
    }
}

/// A reading depends on its number only, so it can be taken again after a crash.
impl Rewindable for Sensors {}

/// It ends after so many readings.
impl Bounded for Sensors {}

/// Reads the sensors of one subtask, on a task of its own: it may wait.
struct SensorReader {
    sensors: Vec<Sensor>,
    readings: u64,
    pause: Duration,
}

impl SourceReader for SensorReader {
    type Split = Sensor;
    type Batch = Readings;

    fn batch(&self) -> Readings {
        Readings::default()
    }

    async fn fetch(&mut self, fetched: &mut Fetched<Readings, Sensor>) -> Result<Progress, BoxError> {
        // The only place to wait: if the job stops here, nothing is lost.
        tokio::time::sleep(self.pause).await;
        for sensor in self.sensors.iter_mut().filter(|sensor| sensor.next < self.readings) {
            fetched
                .batch
                .0
                .push(Reading { sensor: sensor.number, celsius: measure(sensor.number, sensor.next) });
            sensor.next += 1;
            fetched.advanced.push(sensor.clone());
        }
        let done = self.sensors.iter().all(|sensor| sensor.next >= self.readings);
        Ok(if done { Progress::Finished } else { Progress::More })
    }
}

/// Stands in for the hardware.
fn measure(sensor: u32, reading: u64) -> f64 {
    20.0 + f64::from(sensor) + (reading as f64 * 0.7).sin() * 5.0
}

#[pipeline(guarantee = at_least_once)]
fn highest(args: &Args) {
    let readings = source(Sensors {
        sensors: args.sensors,
        readings: args.readings,
        pause: Duration::from_millis(args.pause),
    });
    readings
        .key_by(|reading| reading.sensor)
        .max(|reading| reading.celsius)
        .map(|(sensor, celsius)| (sensor, format!("{celsius:.1}")))
        .sink(print::print());
}

fn main() -> ExitCode {
    flow::run(highest)
}
