//! The Kafka source beside a bare consumer of the same client library that does nothing with the records, on the same
//! topic and broker, in turns:
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

    let mut names = Vec::new();
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for round in 0..ROUNDS {
        let mut results = vec![("bare", bare(&brokers, &topic))];
        results.push(("bytes", flow(kafka::bytes(&topic).brokers(&brokers).bounded()).await));
        results.push(("lines", flow(kafka::lines(&topic).brokers(&brokers).bounded()).await));
        results.push(("messages", flow(kafka::messages(&topic).brokers(&brokers).bounded()).await));
        // The first round warms the broker's cache.
        if round == 0 {
            names = results.iter().map(|(name, _)| *name).collect();
            rates = vec![Vec::new(); results.len()];
            continue;
        }
        for (rates, (_, took)) in rates.iter_mut().zip(results) {
            rates.push(RECORDS as f64 / took.as_secs_f64());
        }
    }
    for rates in &mut rates {
        rates.sort_by(f64::total_cmp);
    }
    let floor = rates[0][rates[0].len() / 2];
    for (name, rates) in names.iter().zip(&rates) {
        let median = rates[rates.len() / 2];
        println!(
            "{name:10} {:6.0} k records/s ({:.0} to {:.0}), {:.2} of bare",
            median / 1e3,
            rates[0] / 1e3,
            rates[rates.len() - 1] / 1e3,
            median / floor
        );
    }
    let admin = AdminClient::<DefaultClientContext>::from_config(
        ClientConfig::new().set("bootstrap.servers", &brokers),
    )
    .expect("admin client");
    let _ = admin.delete_topics(&[&topic], &AdminOptions::new()).await;
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

fn bare(brokers: &str, topic: &str) -> Duration {
    let begin = Instant::now();
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
    let took = begin.elapsed();
    drop(consumer);
    took
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
async fn flow<F>(source: KafkaSource<F, AtEnd>) -> Duration
where
    F: Format,
    for<'a> F::Item<'a>: Length,
{
    let begin = Instant::now();
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
    begin.elapsed()
}
