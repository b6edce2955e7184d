//! Topics on the real broker, and a producer that keeps writing while jobs are killed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer as _},
    error::KafkaError,
    producer::{BaseProducer, BaseRecord, Producer as _},
};

use crate::servers::address;

/// A new topic.
pub(crate) fn create(name: &str, partitions: i32) -> String {
    let topic = format!("{name}-{:x}", std::process::id() as u128 ^ nanoseconds());
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", address("FLOW_TEST_KAFKA"))
        .create()
        .expect("an admin client");
    let new = NewTopic::new(&topic, partitions, TopicReplication::Fixed(1));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
    for result in runtime.block_on(admin.create_topics([&new], &options)).expect("the broker answers") {
        result.expect("the topic is created");
    }
    topic
}

fn nanoseconds() -> u128 {
    std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_nanos()
}

/// Writes records until it is stopped.
pub(crate) struct Producer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Producer {
    /// Starts to write `make(0)`, `make(1)`, .. at this rate.
    pub(crate) fn start(topic: &str, per_second: u64, make: fn(u64) -> String) -> Self {
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", address("FLOW_TEST_KAFKA"))
            .set("enable.idempotence", "true")
            .set("linger.ms", "5")
            .create()
            .expect("a producer");
        let (stop, topic) = (Arc::new(AtomicBool::new(false)), topic.to_owned());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (began, mut written) = (Instant::now(), 0);
            while !stopped.load(Ordering::Relaxed) {
                let due = began.elapsed().as_millis() as u64 * per_second / 1000;
                while written < due {
                    let value = make(written);
                    let record =
                        BaseRecord::<(), _>::to(&topic).payload(&value).partition((written % 4) as i32);
                    match producer.send(record) {
                        Ok(()) => written += 1,
                        // The queue is full while the broker is away.
                        Err(_) => {
                            producer.poll(Duration::from_millis(10));
                        }
                    }
                }
                producer.poll(Duration::from_millis(5));
            }
            producer.flush(Duration::from_secs(60)).expect("the broker takes all records");
            written
        });
        Producer { stop, thread }
    }

    /// Stops, and says how many records there are.
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the producer ends well")
    }
}

/// Keys and values of the committed records of a topic, once there are as many as expected, or more.
pub(crate) fn committed(topic: &str, partitions: i32, expected: usize) -> Vec<(String, String)> {
    let deadline = Instant::now() + Duration::from_secs(60);
    // The end of a transaction is written a moment after its producer is told.
    loop {
        let found = read_committed(topic, partitions);
        if found.len() >= expected || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn read_committed(topic: &str, partitions: i32) -> Vec<(String, String)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", address("FLOW_TEST_KAFKA"))
        .set("group.id", "flow-test-reader")
        .set("isolation.level", "read_committed")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Beginning).expect("a partition");
    }
    consumer.assign(&list).expect("the partitions are assigned");
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap_or_default().to_vec()).expect("text");
    let (mut found, mut open, deadline) = (Vec::new(), partitions, Instant::now() + Duration::from_secs(60));
    while open > 0 {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => found.push((text(message.key()), text(message.payload()))),
            Some(Err(KafkaError::PartitionEOF(_))) => open -= 1,
            Some(Err(error)) => panic!("{error}"),
            None => assert!(Instant::now() < deadline, "the end of `{topic}` was not reached"),
        }
    }
    found
}
