//! The Kafka sink beside a bare loop over the same records with a producer of the same client library, on the same
//! broker, in turns: exactly once beside transactions, at least once beside an idempotent producer. The processor time, of
//! all threads, says more than the clock on a busy machine:
//!
//! ```text
//! FLOW_TEST_KAFKA=host:port cargo bench -p flow-runtime --features kafka --bench kafka_sink
//! ```

use std::{
    env,
    time::{Duration, Instant},
};

use flow_runtime::{
    checkpoint::CheckpointId,
    connectors::kafka,
    sink::{Sink, SinkBuffer, SinkCommitter, SinkContext, SinkWriter, Write, encode_handle},
};
use rdkafka::{
    ClientConfig, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    config::FromClientConfig,
    consumer::{BaseConsumer, Consumer as _},
    producer::{BaseProducer, BaseRecord, Producer as _},
};

const PARTITIONS: i32 = 4;
const EPOCHS: u64 = 5;
const RECORDS_PER_EPOCH: u64 = 100_000;
const RECORDS: u64 = EPOCHS * RECORDS_PER_EPOCH;
const ROUNDS: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() {
    // `cargo test --benches` only asks whether it runs.
    let Ok(brokers) = env::var("FLOW_TEST_KAFKA") else {
        eprintln!("FLOW_TEST_KAFKA is not set: nothing to measure");
        return;
    };
    let topic = format!("flow-bench-sink-{}", std::process::id());
    let config = config(&brokers);
    let admin = AdminClient::<DefaultClientContext>::from_config(&config).expect("admin client");
    let new = NewTopic::new(&topic, PARTITIONS, TopicReplication::Fixed(1));
    for result in admin.create_topics(&[new], &AdminOptions::new()).await.expect("create topic") {
        result.expect("create topic");
    }
    let records: Vec<(u64, String)> = (0..RECORDS_PER_EPOCH).map(record).collect();

    let mut measured: [Vec<Round>; 4] = Default::default();
    for round in 0..=ROUNDS {
        let cx = SinkContext::new(format!("{topic}-{round}"), "bench.sink");
        let sink = kafka::to(&topic).brokers(&brokers);
        let results = [
            bare(&brokers, &topic, &records, true),
            flow(sink.clone(), &cx, &records).await,
            bare(&brokers, &topic, &records, false),
            flow(sink.at_least_once(), &cx, &records).await,
        ];
        // The first round warms everything up.
        if round > 0 {
            measured.iter_mut().zip(results).for_each(|(rounds, result)| rounds.push(result));
        }
    }
    let rate = |rounds: &[Round]| median(rounds.iter().map(|round| RECORDS as f64 / round.seconds));
    let cost = |rounds: &[Round]| median(rounds.iter().map(|round| round.cpu_seconds * 1e9 / RECORDS as f64));
    let names = ["bare transactions", "exactly once", "bare idempotent", "at least once"];
    for (index, (name, rounds)) in names.iter().zip(&measured).enumerate() {
        println!(
            "{name:18} {:6.0} k records/s, {:.2} of bare; {:4.0} ns of processor time a record",
            rate(rounds) / 1e3,
            rate(rounds) / rate(&measured[index / 2 * 2]),
            cost(rounds)
        );
    }
    let bytes: usize = records.iter().map(|(key, value)| key.to_string().len() + value.len()).sum();
    println!(
        "a checkpoint holds {:.1} bytes a record of {:.1} bytes",
        measured[1][0].staged as f64 / RECORDS as f64,
        bytes as f64 / RECORDS_PER_EPOCH as f64
    );
    let _ = admin.delete_topics(&[&topic], &AdminOptions::new()).await;
}

fn record(number: u64) -> (u64, String) {
    let value = format!(
        r#"{{"user":{},"page":"/catalogue/{}","referrer":"https://example.org/{}","status":200,"ms":{}}}"#,
        number % 99_991,
        number.wrapping_mul(2_654_435_761) % 1_000_003,
        number % 17,
        number % 977
    );
    (number % 10_007, value)
}

fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    config
}

/// A transaction for each epoch, with an offset in it; or a flush.
fn bare(brokers: &str, topic: &str, records: &[(u64, String)], transactions: bool) -> Round {
    let mut config = config(brokers);
    config
        .set("enable.idempotence", "true")
        .set("delivery.report.only.error", "true")
        .set("partitioner", "murmur2_random")
        .set("queue.buffering.max.kbytes", "65536");
    if transactions {
        config.set("transactional.id", format!("{topic}-bare"));
    }
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", format!("{topic}-bare"))
        .create()
        .expect("consumer");
    let group = consumer.group_metadata().expect("a group");
    let producer = BaseProducer::from_config(&config).expect("producer");
    if transactions {
        producer.init_transactions(TIMEOUT).expect("init");
    }
    let meter = Meter::start();
    for epoch in 0..EPOCHS {
        if transactions {
            producer.begin_transaction().expect("begin");
        }
        for (key, value) in records {
            let key = key.to_string();
            let mut record = BaseRecord::to(topic).key(&key).payload(value);
            while let Err((_, again)) = producer.send(record) {
                producer.poll(Duration::from_millis(10));
                record = again;
            }
        }
        producer.flush(TIMEOUT).expect("flush");
        if transactions {
            let mut list = TopicPartitionList::new();
            list.add_partition_offset(topic, 0, rdkafka::Offset::Offset(epoch as i64)).expect("offset");
            producer.send_offsets_to_transaction(&list, &group, TIMEOUT).expect("offsets");
            producer.commit_transaction(TIMEOUT).expect("commit");
        }
    }
    meter.stop()
}

/// As the engine does it, with the handle encoded as for the checkpoint. The worker's part, the writer's and the
/// committer's run one after the other here, while in a job they overlap.
async fn flow<S>(sink: S, cx: &SinkContext, records: &[(u64, String)]) -> Round
where
    S: Sink,
    for<'a> S::Buffer: Write<(u64, &'a str)>,
{
    sink.recover(cx, Vec::new()).await.expect("recover");
    let (mut writer, mut committer) = sink.open(cx).await.expect("open");
    let (mut buffer, mut staged) = (sink.buffer(cx), 0);
    let meter = Meter::start();
    for epoch in 1..=EPOCHS {
        for (key, value) in records {
            buffer.write((*key, value.as_str())).expect("write");
            if buffer.is_full() {
                writer.write(&mut buffer).await.expect("write");
                buffer.clear();
            }
        }
        writer.write(&mut buffer).await.expect("write");
        buffer.clear();
        if let Some(handle) = writer.pre_commit(CheckpointId(epoch)).await.expect("pre-commit") {
            staged += std::hint::black_box(encode_handle(&handle).expect("encode")).len();
            committer.commit(CheckpointId(epoch), &handle).await.expect("commit");
        }
    }
    Round { staged, ..meter.stop() }
}

struct Round {
    seconds: f64,
    cpu_seconds: f64,
    /// What the checkpoints would hold.
    staged: usize,
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
        Round {
            seconds: self.begin.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - self.cpu,
            staged: 0,
        }
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
