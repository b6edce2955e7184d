//! How long a record takes from the moment it is due until the sink's writer has it, in memory: a count per key at half
//! of the load that the job can bear, and at a tenth. First the job shows what it can bear.

mod common;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use common::{Section, Table, size};
use flow::{
    BoxError,
    checkpoint::CheckpointId,
    pipeline,
    sink::{
        CommitError, Committed, ExactlyOnce, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext,
        SinkWriter, Write,
    },
    source::{Batch, Bounded, Fetched, Progress, Rewindable, Source, SourceContext, SourceReader, Split},
    worker,
};
use serde::{Deserialize, Serialize};

const KEYS: u64 = 100_000;
/// One record in so many carries the time at which it was due; to look at the clock for each would be most of the work.
const STAMPED: u64 = 64;
/// As many records as a batch of the paced source may have.
const BATCH: u64 = 16_384;

#[pipeline(guarantee = at_least_once)]
fn counts(load: &Load, latencies: &Latencies) {
    let numbers = source(load.clone());
    // The state of a key is the stamp of its last record, so that it lives until the sink.
    let stamped = numbers.key_by(|record| record.key).fold(0u64, |stamp, record| *stamp = record.due);
    stamped.filter(|(_, due)| *due > 0).map(|(_, due)| due).sink(latencies.clone());
}

/// Records at a rate, for a time.
#[derive(Clone)]
struct Load {
    began: Instant,
    /// Of one split, per second; `None` is as fast as it goes.
    rate: Option<f64>,
    splits: u32,
    time: Duration,
    read: Arc<Mutex<u64>>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Numbers {
    split: u32,
    next: u64,
}

impl Split for Numbers {
    fn id(&self) -> String {
        self.split.to_string()
    }
    fn position(&self) -> String {
        self.next.to_string()
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Record {
    key: u64,
    /// In nanoseconds after the begin; zero where nobody looks.
    due: u64,
}

#[derive(Default)]
struct Records(Vec<Record>);

impl Batch for Records {
    type Item<'a> = Record;

    fn records(&mut self) -> impl Iterator<Item = Record> {
        self.0.drain(..)
    }
}

impl Source for Load {
    type Split = Numbers;
    type Batch = Records;
    type Reader = LoadReader;

    async fn discover(&self, _: bool) -> Result<Vec<Numbers>, BoxError> {
        Ok((0..self.splits).map(|split| Numbers { split, next: 0 }).collect())
    }

    async fn open(&self, _: SourceContext, splits: Vec<Numbers>) -> Result<LoadReader, BoxError> {
        Ok(LoadReader { load: self.clone(), splits })
    }
}

impl Rewindable for Load {}
impl Bounded for Load {}

struct LoadReader {
    load: Load,
    splits: Vec<Numbers>,
}

impl LoadReader {
    /// When the record of this number is due.
    fn due(&self, number: u64) -> Duration {
        self.load.rate.map_or(self.load.began.elapsed(), |rate| Duration::from_secs_f64(number as f64 / rate))
    }

    /// How many records are due by now.
    fn until_now(&self) -> u64 {
        self.load.rate.map_or(u64::MAX, |rate| (self.load.began.elapsed().as_secs_f64() * rate) as u64)
    }
}

impl SourceReader for LoadReader {
    type Split = Numbers;
    type Batch = Records;

    fn batch(&self) -> Records {
        Records::default()
    }

    async fn fetch(&mut self, fetched: &mut Fetched<Records, Numbers>) -> Result<Progress, BoxError> {
        let Some(Numbers { split, next }) = self.splits.first().cloned() else {
            return Ok(Progress::Finished);
        };
        while self.until_now() <= next {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let end = self.until_now().min(next + BATCH);
        for number in next..end {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS;
            let stamp = number.is_multiple_of(STAMPED);
            let due = if stamp { self.due(number).as_nanos() as u64 } else { 0 };
            fetched.batch.0.push(Record { key, due });
        }
        self.splits[0].next = end;
        fetched.advanced.push(Numbers { split, next: end });
        *self.load.read.lock().expect("nobody panics") += end - next;
        Ok(if self.load.began.elapsed() < self.load.time { Progress::More } else { Progress::Finished })
    }
}

/// A sink that looks at the clock when its writer gets the records.
#[derive(Clone)]
struct Latencies {
    began: Instant,
    nanos: Arc<Mutex<Vec<u64>>>,
}

#[derive(Default)]
struct Stamps(Vec<u64>);

impl SinkBuffer for Stamps {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn is_full(&self) -> bool {
        self.0.len() >= 4096
    }
    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Write<u64> for Stamps {
    fn write(&mut self, due: u64) -> Result<(), BoxError> {
        self.0.push(due);
        Ok(())
    }
}

impl SinkWriter for Latencies {
    type Buffer = Stamps;
    type Handle = ();

    async fn write(&mut self, buffer: &mut Stamps) -> Result<(), BoxError> {
        let now = self.began.elapsed().as_nanos() as u64;
        self.nanos.lock().expect("nobody panics").extend(buffer.0.iter().map(|due| now.saturating_sub(*due)));
        Ok(())
    }

    async fn pre_commit(&mut self, _: CheckpointId) -> Result<Option<()>, BoxError> {
        Ok(None)
    }
}

struct NothingToCommit;

impl SinkCommitter for NothingToCommit {
    type Handle = ();

    async fn commit(&mut self, _: CheckpointId, (): &()) -> Result<Committed, CommitError> {
        Ok(Committed::Already)
    }
}

impl ExactlyOnce for Latencies {}

impl Sink for Latencies {
    type Buffer = Stamps;
    type Handle = ();
    type Writer = Latencies;
    type Committer = NothingToCommit;

    fn buffer(&self, _: &SinkContext) -> Stamps {
        Stamps::default()
    }

    async fn recover(&self, _: &SinkContext, _: Vec<Recovered<()>>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn open(&self, _: &SinkContext) -> Result<(Latencies, NothingToCommit), BoxError> {
        Ok((self.clone(), NothingToCommit))
    }
}

/// Records per second, and the sorted latencies in milliseconds.
fn run(parallelism: usize, rate: Option<f64>, seconds: u64) -> (f64, Vec<f64>) {
    let (began, time) = (Instant::now(), Duration::from_secs(seconds));
    let rate = rate.map(|rate| rate / parallelism as f64);
    let load = Load { began, rate, splits: parallelism as u32, time, read: Arc::default() };
    let latencies = Latencies { began, nanos: Arc::default() };
    let job = counts(&load, &latencies);
    worker::run(&job, &worker::Config::with_parallelism(job.plan(), parallelism)).expect("the job runs");
    let read = *load.read.lock().expect("nobody panics");
    let nanos = latencies.nanos.lock().expect("nobody panics");
    // What came while the threads were starting says nothing about a job that runs.
    let mut millis: Vec<f64> = nanos.iter().skip(nanos.len() / 10).map(|nanos| *nanos as f64 / 1e6).collect();
    millis.sort_by(f64::total_cmp);
    (read as f64 / began.elapsed().as_secs_f64(), millis)
}

fn main() {
    let seconds = size("FLOW_BENCH_SECONDS", 10);
    let mut section = Section::new(
        "latency",
        "From the moment at which a record is due until the sink's writer has it, in memory: source, key_by, a state \
         per key, sink; 100,000 keys. The source sleeps for a millisecond when nothing is due, which is in the figures.",
    );
    for parallelism in [1, 2] {
        let (most, _) = run(parallelism, None, seconds.min(5));
        let head = ["load", "M records/s", "p50, ms", "p99, ms", "p99.9, ms", "longest, ms"];
        let note = format!("At most {:.1} M records/s.", most / 1e6);
        let mut table = Table::new(format!("parallelism {parallelism}"), note, head);
        for (load, share) in [("a tenth", 0.1), ("half", 0.5)] {
            let (rate, millis) = run(parallelism, Some(most * share), seconds);
            let at = |share: f64| millis[((millis.len() - 1) as f64 * share) as usize];
            table.row([
                load.to_owned(),
                format!("{:.2}", rate / 1e6),
                format!("{:.2}", at(0.5)),
                format!("{:.2}", at(0.99)),
                format!("{:.2}", at(0.999)),
                format!("{:.2}", at(1.0)),
            ]);
        }
        table.print();
        section.table(table);
    }
    section.write();
}
