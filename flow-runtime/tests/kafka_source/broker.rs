//! The source against a real broker: what the mock cannot show.

use std::{
    collections::HashSet,
    env,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use flow_runtime::{
    connectors::kafka::{AtEnd, KafkaSource, KafkaSplit, Lines, Start, bytes, lines, messages},
    source::{Progress, Source, SourceReader},
};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    config::FromClientConfig,
    consumer::{BaseConsumer, CommitMode, Consumer as _},
    message::{Header, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer as _},
};
use tokio::{
    sync::RwLock,
    time::{sleep, timeout},
};

use crate::reading::{Reading, read_all};

/// Held for writing while the broker is down.
static UP: RwLock<()> = RwLock::const_new(());

const TIMEOUT: Duration = Duration::from_secs(60);

fn brokers() -> String {
    env::var("FLOW_TEST_KAFKA").expect(
        "FLOW_TEST_KAFKA names no broker: run `tests/services/up`, then `eval \"$(tests/services/env)\"`, or use `tests/run`",
    )
}

fn config() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers()).set("linger.ms", "5");
    config
}

fn admin() -> AdminClient<DefaultClientContext> {
    AdminClient::from_config(&config()).unwrap()
}

/// A topic of its own for each test, gone when that is over.
struct Topic(String);

impl Topic {
    async fn new(partitions: i32) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("flow-source-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let new = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
        for result in admin().create_topics(&[new], &AdminOptions::new()).await.unwrap() {
            result.unwrap();
        }
        let topic = Topic(name);
        topic.await_partitions(partitions as usize).await;
        topic
    }

    /// A broker tells of a change a moment after it is made.
    async fn await_partitions(&self, count: usize) {
        let admin = admin();
        let known = || {
            let metadata = admin.inner().fetch_metadata(Some(&self.0), TIMEOUT).unwrap();
            let topic = &metadata.topics()[0];
            topic.error().is_none() && topic.partitions().iter().filter(|p| p.leader() >= 0).count() == count
        };
        while !known() {
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn write(&self, partition: i32, values: impl IntoIterator<Item = String>) {
        write(&BaseProducer::from_config(&config()).unwrap(), &self.0, partition, values);
    }

    /// Deletes the records before `offset`, as retention would.
    async fn delete_before(&self, partition: i32, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.0, partition, Offset::Offset(offset)).unwrap();
        admin().delete_records(&list, &AdminOptions::new()).await.unwrap();
    }

    async fn delete(&self) {
        admin().delete_topics(&[&self.0], &AdminOptions::new()).await.unwrap();
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let name = self.0.clone();
        // Only to leave no mess.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _ = runtime
                .block_on(async { admin().delete_topics(&[&name], &AdminOptions::new()).await.map(drop) });
        })
        .join()
        .unwrap();
    }
}

fn write(producer: &BaseProducer, topic: &str, partition: i32, values: impl IntoIterator<Item = String>) {
    for value in values {
        let mut record = BaseRecord::<(), _>::to(topic).partition(partition).payload(&value);
        while let Err((_, again)) = producer.send(record) {
            producer.poll(Duration::from_millis(10));
            record = again;
        }
    }
    producer.flush(TIMEOUT).unwrap();
}

/// The mark that ends a transaction is written a moment after the producer is told that it is over.
async fn await_end(source: &KafkaSource<Lines, AtEnd>, end: i64) {
    let begin = Instant::now();
    while source.discover(false).await.unwrap()[0].end() != Some(end) {
        assert!(begin.elapsed() < TIMEOUT, "the end is not {end}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn transactions_that_are_open_or_aborted_are_not_read() {
    let _up = UP.read().await;
    let topic = Topic::new(1).await;
    let transactional = |id: &str| {
        let mut config = config();
        config.set("transactional.id", format!("{}-{id}", topic.0));
        let producer = BaseProducer::from_config(&config).unwrap();
        producer.init_transactions(TIMEOUT).unwrap();
        producer
    };
    let producer = transactional("a");
    let transaction = |values: [&str; 2], commit: bool| {
        producer.begin_transaction().unwrap();
        write(&producer, &topic.0, 0, values.map(str::to_owned));
        if commit {
            producer.commit_transaction(TIMEOUT).unwrap();
        } else {
            producer.abort_transaction(TIMEOUT).unwrap();
        }
    };
    transaction(["a", "b"], true);
    transaction(["lost", "too"], false);
    transaction(["c", "d"], true);
    transaction(["never", "seen"], false);

    // Offsets 2, 5, 8 and 11 are the marks that end the transactions: the last record is well before the end.
    let source = lines(&topic.0).brokers(brokers()).bounded();
    await_end(&source, 12).await;
    let mut seen = Vec::new();
    let mut reading = Reading::open(&source, source.discover(false).await.unwrap()).await.unwrap();
    reading.rest(|line| seen.push(line.to_owned())).await.unwrap();
    assert_eq!(seen, ["a", "b", "c", "d"]);
    assert_eq!(reading.positions[&0].next(), 12);

    // An unbounded reader moves over the marks too, once it has nothing else to do.
    let source = lines(&topic.0).brokers(brokers());
    let splits = source.discover(false).await.unwrap();
    let mut reading = Reading::open(&source, splits).await.unwrap();
    let begin = Instant::now();
    while reading.positions[&0].next() < 12 {
        reading.step(|_| ()).await.unwrap();
        assert!(begin.elapsed() < TIMEOUT);
    }

    // While a transaction is open, the end is where it begins.
    let open = transactional("b");
    open.begin_transaction().unwrap();
    write(&open, &topic.0, 0, ["pending".to_owned()]);
    topic.write(0, ["behind".to_owned()]);
    let source = lines(&topic.0).brokers(brokers()).bounded();
    assert_eq!(source.discover(false).await.unwrap()[0].end(), Some(12));
    seen.clear();
    read_all(&source, |line| seen.push(line.to_owned())).await.unwrap();
    assert_eq!(seen, ["a", "b", "c", "d"]);
    open.commit_transaction(TIMEOUT).unwrap();
    await_end(&source, 15).await;
    seen.clear();
    read_all(&source, |line| seen.push(line.to_owned())).await.unwrap();
    assert_eq!(seen, ["a", "b", "c", "d", "pending", "behind"]);
}

#[tokio::test]
async fn a_partition_whose_records_were_all_deleted_has_an_end() {
    let _up = UP.read().await;
    let topic = Topic::new(2).await;
    topic.write(0, (0..100).map(|n| n.to_string()));
    topic.write(1, ["kept".to_owned()]);
    topic.delete_before(0, 100).await;
    let source = lines(&topic.0).brokers(brokers()).bounded();
    let mut seen = Vec::new();
    read_all(&source, |line| seen.push(line.to_owned())).await.unwrap();
    assert_eq!(seen, ["kept"]);
}

#[tokio::test]
async fn new_partitions_are_read_from_their_beginning() {
    let _up = UP.read().await;
    let topic = Topic::new(1).await;
    topic.write(0, ["old".to_owned()]);
    let source = lines(&topic.0).brokers(brokers()).start(Start::Latest);
    let first = source.discover(false).await.unwrap();
    let mut reading = Reading::open(&source, first.clone()).await.unwrap();

    admin().create_partitions(&[NewPartitions::new(&topic.0, 3)], &AdminOptions::new()).await.unwrap();
    topic.await_partitions(3).await;
    topic.write(2, ["new".to_owned()]);
    let found = source.discover(false).await.unwrap();
    assert_eq!(found[..1], first[..]);
    let places: Vec<_> = found.iter().map(|split| (split.partition(), split.next())).collect();
    assert_eq!(places, [(0, 1), (1, 0), (2, 0)]);

    reading.reader.add_splits(found[1..].to_vec()).await.unwrap();
    let mut seen = Vec::new();
    while seen.is_empty() {
        reading.step(|line| seen.push(line.to_owned())).await.unwrap();
    }
    assert_eq!(seen, ["new"]);
}

#[tokio::test]
async fn a_start_by_time_begins_at_the_first_record_from_then_on() {
    let _up = UP.read().await;
    let topic = Topic::new(2).await;
    let producer = BaseProducer::from_config(&config()).unwrap();
    for (partition, at) in [(0, 1_000), (0, 2_000), (0, 3_000), (1, 500)] {
        let value = at.to_string();
        let record = BaseRecord::<(), _>::to(&topic.0).partition(partition).timestamp(at).payload(&value);
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let source = lines(&topic.0).brokers(brokers()).start(Start::Timestamp(1_500)).bounded();
    let starts: Vec<_> = source.discover(false).await.unwrap().iter().map(KafkaSplit::next).collect();
    assert_eq!(starts, [1, 1], "the second record, and the end");
    let mut seen = Vec::new();
    read_all(&source, |line| seen.push(line.to_owned())).await.unwrap();
    assert_eq!(seen, ["2000", "3000"]);
}

#[tokio::test]
async fn a_group_begins_where_it_stopped() {
    let _up = UP.read().await;
    let topic = Topic::new(2).await;
    topic.write(0, ["a", "b", "c"].map(str::to_owned));
    topic.write(1, ["d", "e"].map(str::to_owned));
    let mut config = config();
    let consumer = BaseConsumer::from_config(config.set("group.id", &topic.0)).unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&topic.0, 0, Offset::Offset(2)).unwrap();
    consumer.commit(&list, CommitMode::Sync).unwrap();

    let source = lines(&topic.0).brokers(brokers()).group(&topic.0).bounded();
    let mut seen = Vec::new();
    read_all(&source, |line| seen.push(line.to_owned())).await.unwrap();
    seen.sort();
    assert_eq!(seen, ["c", "d", "e"]);

    // A restore takes the offsets of the checkpoint, whatever the group has committed.
    seen.clear();
    let splits = vec![KafkaSplit::new(topic.0.as_str(), 0, 1).until(3)];
    Reading::open(&source, splits).await.unwrap().rest(|line| seen.push(line.to_owned())).await.unwrap();
    assert_eq!(seen, ["b", "c"]);
}

#[tokio::test]
async fn offsets_that_retention_deleted_are_an_error() {
    let _up = UP.read().await;
    let topic = Topic::new(1).await;
    topic.write(0, (0..20_000).map(|n| format!("{n:0100}")));
    // So that little is fetched ahead.
    let source = lines(&topic.0)
        .brokers(brokers())
        .property("queued.min.messages", "1")
        .property("queued.max.messages.kbytes", "1")
        .property("max.partition.fetch.bytes", "20000");
    let mut reading = Reading::open(&source, source.discover(false).await.unwrap()).await.unwrap();
    reading.step(|_| ()).await.unwrap();
    sleep(Duration::from_millis(200)).await;
    topic.delete_before(0, 19_000).await;
    let running = reading.rest(|_| ()).await.unwrap_err().to_string();
    let next = reading.positions[&0].next();
    assert!(next < 19_000, "the reader was too far to notice: {next}");
    let expected = format!(
        "kafka topic `{}`, partition 0: offset {next} is wanted next, but the broker holds 19000 to 19999: its retention",
        topic.0
    );
    assert!(running.starts_with(&expected), "{running}");

    let saved = vec![reading.positions[&0].clone()];
    let restored = Reading::open(&source, saved).await.err().unwrap().to_string();
    assert!(restored.starts_with(&expected), "{restored}");
}

#[tokio::test]
async fn a_topic_that_vanishes_is_an_error() {
    let _up = UP.read().await;
    let topic = Topic::new(1).await;
    topic.write(0, ["a".to_owned()]);
    let source = lines(&topic.0).brokers(brokers()).property("topic.metadata.propagation.max.ms", "1000");
    let mut reading = Reading::open(&source, source.discover(false).await.unwrap()).await.unwrap();
    reading.step(|_| ()).await.unwrap();
    topic.delete().await;
    let error =
        timeout(TIMEOUT, reading.rest(|_| ())).await.expect("an error in time").unwrap_err().to_string();
    assert!(error.starts_with(&format!("kafka topic `{}` does not exist", topic.0)), "{error}");
}

#[tokio::test]
async fn messages_have_headers_and_tombstones() {
    let _up = UP.read().await;
    let topic = Topic::new(1).await;
    let producer = BaseProducer::from_config(&config()).unwrap();
    let headers = OwnedHeaders::new()
        .insert(Header { key: "trace", value: Some("17") })
        .insert(Header { key: "none", value: None::<&str> });
    producer
        .send(BaseRecord::to(&topic.0).key("k").payload("v").headers(headers).timestamp(1_234))
        .map_err(|(error, _)| error)
        .unwrap();
    producer.send(BaseRecord::<_, ()>::to(&topic.0).key("k")).map_err(|(error, _)| error).unwrap();
    producer.send(BaseRecord::<(), _>::to(&topic.0).payload("")).map_err(|(error, _)| error).unwrap();
    producer.flush(TIMEOUT).unwrap();

    let source = messages(&topic.0).brokers(brokers()).bounded();
    let mut count = 0;
    read_all(&source, |message| {
        count += 1;
        assert_eq!((message.topic, message.partition), (topic.0.as_str(), 0));
        match message.offset {
            0 => {
                assert_eq!((message.key, message.payload), (Some(&b"k"[..]), Some(&b"v"[..])));
                assert_eq!(message.timestamp, Some(1_234));
                assert_eq!(message.header("trace"), Some(&b"17"[..]));
                assert_eq!(message.headers().last(), Some(("none", None)));
            }
            1 => assert_eq!((message.key, message.payload), (Some(&b"k"[..]), None)),
            _ => assert_eq!((message.key, message.headers().count()), (None, 0)),
        }
    })
    .await
    .unwrap();
    assert_eq!(count, 3);

    let source = bytes(&topic.0).brokers(brokers()).bounded();
    let mut seen = Vec::new();
    read_all(&source, |value| seen.push(value.to_owned())).await.unwrap();
    assert_eq!(seen, [&b"v"[..], b""], "without the tombstone");
}

#[tokio::test]
async fn a_broker_may_be_killed_and_come_back() {
    let _down = UP.write().await;
    const RECORDS: usize = 200_000;
    let topic = Topic::new(2).await;
    for partition in 0..2 {
        topic.write(partition, (0..RECORDS / 2).map(|n| (2 * n + partition as usize).to_string()));
    }
    let control = |verb: &str| {
        let services =
            env::var("FLOW_TEST_SERVICES").expect("FLOW_TEST_SERVICES is set by tests/services/env");
        let status = Command::new(format!("{services}/ctl")).args(["kafka", verb]).status().unwrap();
        assert!(status.success(), "ctl kafka {verb}");
    };
    let source = lines(&topic.0).brokers(brokers()).bounded().property("queued.min.messages", "1000");
    let mut reading = Reading::open(&source, source.discover(false).await.unwrap()).await.unwrap();
    let mut seen = HashSet::new();
    let mut count = 0;
    let mut note = |line: &str| {
        count += 1;
        seen.insert(line.parse::<usize>().unwrap());
    };
    for _ in 0..3 {
        reading.step(&mut note).await.unwrap();
    }
    control("kill");
    // What was fetched ahead may still come; then there is nothing, and no error.
    while let Ok(progress) = timeout(Duration::from_secs(2), reading.step(&mut note)).await {
        assert_eq!(progress.unwrap(), Progress::More, "the broker was killed too late");
    }
    control("start");
    reading.rest(&mut note).await.unwrap();
    assert_eq!((count, seen.len()), (RECORDS, RECORDS));
}
