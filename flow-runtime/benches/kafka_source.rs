//! The Kafka source beside a bare consumer of the same client library that does nothing with the records, on the same
//! topic and broker, in turns. The processor time, of all threads, says more than the clock on a busy machine:
//!
//! ```text
//! FLOW_TEST_KAFKA=host:port cargo bench -p flow-runtime --features kafka --bench kafka_source
//! ```

use std::{
    env,
    hint::black_box,
    time::{Duration, Instant},
};

use flow_runtime::{
    connectors::kafka::{self, AtEnd, Format, KafkaSource},
    source::{Batch, Fetched, Progress, Source, SourceContext, SourceReader},
};
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    config::FromClientConfig,
    consumer::{BaseConsumer, Consumer as _},
    producer::{BaseProducer, BaseRecord, Producer as _},
};

const RECORDS: u64 = 2_000_000;
const PARTITIONS: i32 = 4;
const ROUNDS: usize = 7;

#[tokio::main]
async fn main() {
    // `cargo test --benches` only asks whether it runs.
    let Ok(brokers) = env::var("FLOW_TEST_KAFKA") else {
        eprintln!("FLOW_TEST_KAFKA is not set: nothing to measure");
        return;
    };
    let topic = format!("flow-bench-{}", std::process::id());
    fill(&brokers, &topic).await;

    let mut measured: [Vec<Round>; 4] = Default::default();
    for round in 0..=ROUNDS {
        let results = [
            bare(&brokers, &topic),
            flow(kafka::bytes(&topic).brokers(&brokers).bounded()).await,
            flow(kafka::lines(&topic).brokers(&brokers).bounded()).await,
            flow(kafka::messages(&topic).brokers(&brokers).bounded()).await,
        ];
        // The first round warms the broker's cache.
        if round > 0 {
            measured.iter_mut().zip(results).for_each(|(rounds, result)| rounds.push(result));
        }
    }
    let rate = |rounds: &[Round]| median(rounds.iter().map(|round| RECORDS as f64 / round.seconds));
    let cost = |rounds: &[Round]| median(rounds.iter().map(|round| round.cpu_seconds * 1e9 / RECORDS as f64));
    let floor = rate(&measured[0]);
    for (name, rounds) in ["bare", "bytes", "lines", "messages"].iter().zip(&measured) {
        println!(
            "{name:10} {:6.0} k records/s, {:.2} of bare; {:4.0} ns of processor time a record",
            rate(rounds) / 1e3,
            rate(rounds) / floor,
            cost(rounds)
        );
    }
    let admin = AdminClient::<DefaultClientContext>::from_config(
        ClientConfig::new().set("bootstrap.servers", &brokers),
    )
    .expect("admin client");
    let _ = admin.delete_topics(&[&topic], &AdminOptions::new()).await;
}

struct Round {
    seconds: f64,
    cpu_seconds: f64,
}

/// Measures from its creation.
struct Meter {
    begin: Instant,
    cpu: f64,
}

impl Meter {
    fn start() -> Self {
        Meter { begin: Instant::now(), cpu: cpu_seconds() }
    }

    fn stop(self) -> Round {
        Round { seconds: self.begin.elapsed().as_secs_f64(), cpu_seconds: cpu_seconds() - self.cpu }
    }
}

/// What this process has used, where Linux tells: fields 14 and 15, in hundredths of a second. The name of the
/// program, in parentheses, may contain blanks.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn fill(brokers: &str, topic: &str) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("linger.ms", "50").set("compression.type", "lz4");
    let admin = AdminClient::<DefaultClientContext>::from_config(&config).expect("admin client");
    let new = NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1));
    for result in admin.create_topics(&[new], &AdminOptions::new()).await.expect("create topic") {
        result.expect("create topic");
    }
    let producer = BaseProducer::from_config(&config).expect("producer");
    for number in 0..RECORDS {
        let value = format!(
            r#"{{"user":{},"page":"/catalogue/{}","referrer":"https://example.org/{}","status":200,"ms":{}}}"#,
            number % 99_991,
            number.wrapping_mul(2_654_435_761) % 1_000_003,
            number % 17,
            number % 977
        );
        let mut record =
            BaseRecord::<(), _>::to(topic).partition((number % PARTITIONS as u64) as i32).payload(&value);
        while let Err((_, again)) = producer.send(record) {
            producer.poll(Duration::from_millis(10));
            record = again;
        }
    }
    producer.flush(Duration::from_secs(60)).expect("flush");
}

fn bare(brokers: &str, topic: &str) -> Round {
    let meter = Meter::start();
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "bare")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("fetch.queue.backoff.ms", "10")
        .create()
        .expect("consumer");
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Beginning).expect("offset");
    }
    consumer.assign(&list).expect("assign");
    let (mut records, mut bytes) = (0, 0);
    while records < RECORDS {
        if let Some(message) = consumer.poll(Duration::from_secs(1)) {
            bytes += message.expect("message").payload().expect("payload").len();
            records += 1;
        }
    }
    black_box(bytes);
    meter.stop()
}

trait Length {
    fn length(&self) -> usize;
}

impl Length for &[u8] {
    fn length(&self) -> usize {
        self.len()
    }
}

impl Length for &str {
    fn length(&self) -> usize {
        self.len()
    }
}

impl Length for kafka::Message<'_> {
    fn length(&self) -> usize {
        self.payload.map_or(0, <[u8]>::len)
    }
}

/// As the engine does it: a task fetches, and hands its batches to the worker, which hands them back.
async fn flow<F>(source: KafkaSource<F, AtEnd>) -> Round
where
    F: Format,
    for<'a> F::Item<'a>: Length,
{
    let meter = Meter::start();
    let splits = source.discover(false).await.expect("discover");
    let cx = SourceContext::new("bench", "source", 0, 1);
    let mut reader = source.open(cx, splits).await.expect("open");
    let (full, filled) = std::sync::mpsc::sync_channel(2);
    let (empty, mut emptied) = tokio::sync::mpsc::channel(4);
    for _ in 0..3 {
        empty.send(Fetched { batch: reader.batch(), advanced: Vec::new() }).await.expect("channel");
    }
    let task = tokio::spawn(async move {
        while let Some(mut fetched) = emptied.recv().await {
            fetched.advanced.clear();
            let progress = reader.fetch(&mut fetched).await.expect("fetch");
            full.send(fetched).expect("channel");
            if progress == Progress::Finished {
                break;
            }
        }
    });
    let worker = std::thread::spawn(move || {
        let (mut records, mut bytes) = (0, 0);
        while let Ok(mut fetched) = filled.recv() {
            for record in fetched.batch.records() {
                records += 1;
                bytes += record.length();
            }
            let _ = empty.try_send(fetched);
        }
        black_box(bytes);
        assert_eq!(records, RECORDS);
    });
    task.await.expect("task");
    worker.join().expect("worker");
    meter.stop()
}
