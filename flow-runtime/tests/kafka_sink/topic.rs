//! Topics on the real broker, and what readers of committed records see in them.

use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    config::FromClientConfig,
    consumer::{BaseConsumer, Consumer as _},
    error::{KafkaError, RDKafkaErrorCode as Code},
    message::{Headers as _, OwnedMessage},
};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn brokers() -> String {
    env::var("FLOW_TEST_KAFKA").expect(
        "FLOW_TEST_KAFKA names no broker: run `tests/services/up`, then `eval \"$(tests/services/env)\"`, or use `tests/run`",
    )
}

pub(crate) fn config() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers()).set("linger.ms", "5");
    config
}

fn admin() -> AdminClient<DefaultClientContext> {
    AdminClient::from_config(&config()).unwrap()
}

/// A topic of its own for each test, gone when that is over. The job has its name.
pub(crate) struct Topic {
    pub(crate) name: String,
    partitions: i32,
}

impl Topic {
    pub(crate) async fn new(partitions: i32) -> Self {
        Topic::with(partitions, &[]).await
    }

    pub(crate) async fn with(partitions: i32, settings: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let start = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u32;
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = format!("flow-sink-{process}-{start:x}-{count}");
        let new = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
        let new = settings.iter().fold(new, |new, (key, value)| new.set(key, value));
        for result in admin().create_topics(&[new], &AdminOptions::new()).await.unwrap() {
            result.unwrap();
        }
        let topic = Topic { name, partitions };
        topic.known().await;
        topic
    }

    /// A broker tells of a new topic a moment after it is made.
    async fn known(&self) {
        let (name, partitions) = (self.name.clone(), self.partitions as usize);
        let wait = move || {
            let (asking, began) = (BaseConsumer::from_config(&config()).unwrap(), Instant::now());
            loop {
                let metadata = asking.fetch_metadata(Some(&name), Duration::from_secs(5));
                let known = |led: &rdkafka::metadata::MetadataPartition| led.error().is_none();
                if metadata.is_ok_and(|metadata| {
                    metadata.topics().iter().any(|topic| {
                        topic.partitions().len() == partitions && topic.partitions().iter().all(known)
                    })
                }) {
                    return;
                }
                assert!(began.elapsed() < TIMEOUT, "topic {name} is not known");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        tokio::task::spawn_blocking(wait).await.unwrap();
    }

    /// Deletes the marker of a subtask.
    pub(crate) async fn forget_marker(&self, subtask: usize) {
        let group = format!("flow:{}:counts.sink:{subtask}", self.name);
        for result in admin().delete_groups(&[&group], &AdminOptions::new()).await.unwrap() {
            result.unwrap();
        }
    }

    /// What is committed, in the order of the partitions: as many as expected, and no more. The end of a transaction is
    /// written a moment after its producer is told.
    #[track_caller]
    pub(crate) fn committed(&self, expected: usize) -> Vec<OwnedMessage> {
        let began = Instant::now();
        loop {
            let found = read(&brokers(), &self.name, self.partitions);
            if found.len() >= expected {
                assert_eq!(found.len(), expected, "{:?}", found.iter().map(value).collect::<Vec<_>>());
                return found;
            }
            assert!(began.elapsed() < TIMEOUT, "{} of {expected} records are there", found.len());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The values of what is committed, sorted.
    #[track_caller]
    pub(crate) fn values(&self, expected: usize) -> Vec<String> {
        let mut values: Vec<_> = self.committed(expected).iter().map(value).collect();
        values.sort();
        values
    }

    /// As [`values`](Self::values), which have to be these.
    #[track_caller]
    pub(crate) fn holds<const N: usize>(&self, expected: [&str; N]) {
        assert_eq!(self.values(N), expected);
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let name = self.name.clone();
        // Only to leave no mess.
        let _ = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _ = runtime
                .block_on(async { admin().delete_topics(&[&name], &AdminOptions::new()).await.map(drop) });
        })
        .join();
    }
}

/// The committed records of a topic, up to where its partitions end.
pub(crate) fn read(brokers: &str, topic: &str, partitions: i32) -> Vec<OwnedMessage> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "flow-test-reader")
        .set("isolation.level", "read_committed")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .create()
        .unwrap();
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).unwrap();
    let (mut found, mut open) = (Vec::new(), partitions);
    let began = Instant::now();
    while open > 0 {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => found.push(message.detach()),
            Some(Err(KafkaError::PartitionEOF(_))) => open -= 1,
            // A topic is known everywhere a moment after it was made.
            Some(Err(error)) if error.rdkafka_error_code() == Some(Code::UnknownTopicOrPartition) => {}
            Some(Err(error)) => panic!("{error}"),
            None => assert!(began.elapsed() < TIMEOUT, "the end of `{topic}` was not reached"),
        }
    }
    found.sort_by_key(|message| (message.partition(), message.offset()));
    found
}

pub(crate) fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8(bytes.unwrap_or(b"(none)").to_vec()).unwrap()
}

pub(crate) fn value(message: &OwnedMessage) -> String {
    text(message.payload())
}

pub(crate) fn headers(message: &OwnedMessage) -> Vec<(String, String)> {
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    headers.map(|header| (header.key.to_owned(), text(header.value))).collect()
}
