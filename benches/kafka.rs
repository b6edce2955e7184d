//! Reading from Kafka, beside a bare consumer that does nothing with the records; and from Kafka to Kafka, exactly once,
//! beside a bare loop of a consumer and a transactional producer of the same client library. The brokers are those of
//! `FLOW_TEST_KAFKA`, or else the tests' own.

mod common;

use std::time::{Duration, Instant};

use common::{Bench, Seen, Tally, check, service, size};
use flow::{Definition, Job, kafka, pipeline, worker};
use futures_util::FutureExt as _;
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    config::FromClientConfig,
    consumer::{BaseConsumer, Consumer as _},
    producer::{BaseProducer, BaseRecord, Producer as _},
};

const PARTITIONS: i32 = 4;
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often the bare loop commits, and the job takes a checkpoint.
const INTERVAL: Duration = Duration::from_secs(1);

#[pipeline(guarantee = at_least_once)]
fn read(brokers: &str, topic: &str, seen: &Seen) {
    let records = source(kafka::bytes(topic).brokers(brokers).bounded());
    records.map(|payload| payload.len() as u64).sink(Tally(seen.clone()));
}

#[pipeline(guarantee = exactly_once)]
fn transfer(brokers: &str, from: &str, to: &str) {
    let lines = source(kafka::lines(from).brokers(brokers).bounded());
    lines.map(|line| (line.len() as u64, line)).sink(kafka::to(to).brokers(brokers));
}

/// The topics of a run, and where the brokers are.
#[derive(Clone)]
struct Topics {
    brokers: String,
    records: u64,
    input: String,
    output: String,
}

impl Topics {
    fn new(brokers: &str, records: u64) -> Self {
        let output = format!("flow-bench-out-{}", std::process::id());
        Topics { brokers: brokers.to_owned(), records, input: format!("flow-bench-in-{records}"), output }
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers);
        config
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        AdminClient::from_config(&self.config()).expect("an admin client")
    }

    /// Whether the topic had to be made.
    fn create(&self, topic: &str) -> bool {
        let new = NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1));
        let (admin, options) = (self.admin(), AdminOptions::new());
        let results = wait(admin.create_topics(&[new], &options)).expect("an answer");
        match results.into_iter().next().expect("a result for the topic") {
            Ok(_) => true,
            Err((_, rdkafka::types::RDKafkaErrorCode::TopicAlreadyExists)) => false,
            Err((topic, code)) => panic!("{topic} cannot be made: {code}"),
        }
    }

    /// The input, which all runs read: about 100 bytes each.
    fn fill(&self) {
        if !self.create(&self.input) && self.size(&self.input) >= self.records {
            return;
        }
        let mut config = self.config();
        config.set("linger.ms", "50").set("compression.type", "lz4");
        let producer = BaseProducer::from_config(&config).expect("a producer");
        for number in self.size(&self.input)..self.records {
            let value = format!(
                r#"{{"user":{},"page":"/catalogue/{}","referrer":"https://example.org/{}","status":200,"ms":{}}}"#,
                number % 99_991,
                number.wrapping_mul(2_654_435_761) % 1_000_003,
                number % 17,
                number % 977
            );
            let partition = (number % PARTITIONS as u64) as i32;
            send(&producer, BaseRecord::<(), _>::to(&self.input).partition(partition).payload(&value));
        }
        producer.flush(TIMEOUT).expect("the brokers take it");
    }

    /// How many offsets the topic has.
    fn size(&self, topic: &str) -> u64 {
        let consumer: BaseConsumer = self.config().create().expect("a consumer");
        let offsets = (0..PARTITIONS).map(|partition| {
            let (low, high) = consumer.fetch_watermarks(topic, partition, TIMEOUT).unwrap_or((0, 0));
            (high - low) as u64
        });
        offsets.sum()
    }

    /// Stands at the topic's begin.
    fn consumer(&self, topic: &str, committed: bool) -> BaseConsumer {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", "flow-bench")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "false")
            .set("fetch.queue.backoff.ms", "10")
            .set("isolation.level", if committed { "read_committed" } else { "read_uncommitted" })
            .create()
            .expect("a consumer");
        let mut list = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            list.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
        }
        consumer.assign(&list).expect("an assignment");
        consumer
    }

    /// What readers of committed records see in the output, which is then deleted. Each record is counted once, so that
    /// one too many is seen as well as one too few.
    fn committed(&self) -> u64 {
        let consumer = self.consumer(&self.output, true);
        let (mut count, mut sum) = (0, 0);
        // After the last one nothing comes for a while.
        let mut patience = TIMEOUT;
        while let Some(message) = consumer.poll(patience) {
            count += 1;
            sum += message.expect("a record").payload().map_or(0, <[u8]>::len) as u64;
            patience = if count < self.records { TIMEOUT } else { Duration::from_secs(1) };
        }
        let (admin, options) = (self.admin(), AdminOptions::new());
        wait(admin.delete_topics(&[&self.output], &options)).expect("an answer");
        check(count, sum)
    }

    fn bare_read(&self) -> u64 {
        let consumer = self.consumer(&self.input, false);
        let (mut count, mut sum) = (0, 0);
        while count < self.records {
            if let Some(message) = consumer.poll(TIMEOUT) {
                sum += message.expect("a record").payload().expect("a payload").len() as u64;
                count += 1;
            }
        }
        check(count, sum)
    }

    /// Consume, produce, and each second commit both in a transaction.
    fn bare_transfer(&self) {
        let consumer = self.consumer(&self.input, false);
        let group = consumer.group_metadata().expect("a group");
        let producer: BaseProducer = self
            .config()
            .set("enable.idempotence", "true")
            .set("delivery.report.only.error", "true")
            .set("partitioner", "murmur2_random")
            .set("queue.buffering.max.kbytes", "65536")
            .set("transactional.id", format!("{}-bare", self.output))
            .create()
            .expect("a producer");
        producer.init_transactions(TIMEOUT).expect("the brokers answer");
        let mut records = 0;
        while records < self.records {
            producer.begin_transaction().expect("a transaction");
            let began = Instant::now();
            let mut next = [None; PARTITIONS as usize];
            while records < self.records && began.elapsed() < INTERVAL {
                let Some(message) = consumer.poll(TIMEOUT) else { continue };
                let message = message.expect("a record");
                let payload = message.payload_view::<str>().expect("a payload").expect("text");
                let key = (payload.len() as u64).to_string();
                send(&producer, BaseRecord::to(&self.output).key(&key).payload(payload));
                next[message.partition() as usize] = Some(message.offset() + 1);
                records += 1;
            }
            producer.flush(TIMEOUT).expect("the brokers take it");
            let mut list = TopicPartitionList::new();
            for (partition, next) in (0..).zip(next) {
                if let Some(next) = next {
                    list.add_partition_offset(&self.input, partition, Offset::Offset(next))
                        .expect("an offset");
                }
            }
            producer.send_offsets_to_transaction(&list, &group, TIMEOUT).expect("the offsets are taken");
            producer.commit_transaction(TIMEOUT).expect("the commit is taken");
        }
    }

    fn flow_read(&self, parallelism: usize) -> u64 {
        let seen = Seen::default();
        run(&read(&self.brokers, &self.input, &seen), parallelism);
        seen.take()
    }

    fn flow_transfer(&self, parallelism: usize) {
        run(&transfer(&self.brokers, &self.input, &self.output), parallelism);
    }
}

fn run<D: Definition + 'static>(job: &Job<D>, parallelism: usize) {
    let mut config = worker::Config::with_parallelism(job.plan(), parallelism);
    let folder = tempfile::tempdir().expect("a temporary directory");
    config.checkpoint_interval = Some(INTERVAL);
    config.checkpoint_dir = Some(folder.path().display().to_string());
    worker::run(job, &config).expect("the job runs");
}

/// Waits while the producer's queue is full.
fn send<K: rdkafka::message::ToBytes + ?Sized>(producer: &BaseProducer, record: BaseRecord<'_, K, str>) {
    let mut record = record;
    while let Err((_, again)) = producer.send(record) {
        producer.poll(Duration::from_millis(10));
        record = again;
    }
}

/// The client's futures need no runtime.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future.boxed_local())
}

fn main() {
    let records = size("FLOW_BENCH_RECORDS", 2_000_000);
    let topics = Topics::new(&service("FLOW_TEST_KAFKA"), records);
    let mut bench = Bench::new(
        "kafka",
        "JSON of about 100 bytes in four partitions on one broker on this machine, which takes processor time as well.",
    );
    let reading = |run: fn(&Topics) -> u64| {
        let (topics, same) = (topics.clone(), topics.clone());
        (move || topics.fill(), move |()| run(&same))
    };
    let case = bench.case("Kafka in", records);
    for (name, run) in [
        ("floor: a bare consumer", Topics::bare_read as fn(&Topics) -> u64),
        ("flow, parallelism 1", |topics| topics.flow_read(1)),
        ("flow, parallelism 2", |topics| topics.flow_read(2)),
    ] {
        let (prepare, run) = reading(run);
        case.prepared(name, prepare, run);
    }
    let case = bench.case("Kafka to Kafka, exactly once, each second", records);
    for (name, run) in [
        ("floor: a bare transactional loop", Topics::bare_transfer as fn(&Topics)),
        ("flow, parallelism 1", |topics| topics.flow_transfer(1)),
        ("flow, parallelism 2", |topics| topics.flow_transfer(2)),
    ] {
        let [before, during, after] = [(); 3].map(|()| topics.clone());
        let prepare = move || {
            before.fill();
            before.create(&before.output);
        };
        case.checked(name, prepare, move |()| run(&during), move |()| after.committed());
    }
    bench.run();
}
