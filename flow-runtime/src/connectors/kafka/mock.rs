//! A Kafka broker inside the process, for demos and tests.
//!
//! ```
//! use flow_runtime::connectors::kafka::{self, mock::MockBroker};
//!
//! # fn main() -> Result<(), flow_runtime::error::BoxError> {
//! let broker = MockBroker::start()?;
//! broker.create_topic("words", 2)?;
//! broker.fill_values("words", ["to be", "or not to be"])?;
//! let source = kafka::lines("words").brokers(broker.brokers()).bounded();
//! # Ok(())
//! # }
//! ```
//!
//! It is librdkafka's, and it is no Kafka:
//!
//! - A partition keeps about 5 MiB of records as they were sent, which [`fill`](MockBroker::fill) does compressed;
//!   the oldest are deleted beyond that. A million records of 100 bytes of text want 8 partitions. `fill` fails if
//!   something was deleted.
//! - Transactions have no effect: what is not committed, or aborted, is visible. A [sink](super::sink) that is exactly
//!   once refuses it; one that is [at least once](super::KafkaSink::at_least_once) writes to it.
//! - Looking for an offset by time finds the end of the partition.
//! - It ends with the process, or when it is dropped.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    ClientConfig, ClientContext,
    config::{FromClientConfigAndContext, RDKafkaLogLevel},
    error::{KafkaError as ClientError, RDKafkaErrorCode as Code},
    mocking::MockCluster,
    producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer},
};

use super::KafkaError;

/// How long to wait for what happens within this process.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The broker; gone when it is dropped.
pub struct MockBroker {
    producer: ThreadedProducer<Deliveries>,
}

impl MockBroker {
    /// Starts a broker on a free port of the loopback interface.
    pub fn start() -> Result<Self, KafkaError> {
        let mut config = ClientConfig::new();
        config
            .set_log_level(RDKafkaLogLevel::Error)
            .set("test.mock.num.brokers", "1")
            .set("compression.type", "lz4")
            .set("linger.ms", "50")
            .set("batch.num.messages", "100000")
            .set("queue.buffering.max.messages", "500000")
            // The records of a partition stay in the order in which they were given.
            .set("enable.idempotence", "true");
        let producer = ThreadedProducer::from_config_and_context(&config, Deliveries::default())
            .map_err(|error| failed("start", &error))?;
        Ok(MockBroker { producer })
    }

    /// The address, for [`brokers`](super::KafkaSource::brokers).
    pub fn brokers(&self) -> String {
        self.cluster().map(|cluster| cluster.bootstrap_servers()).unwrap_or_default()
    }

    /// Makes a topic.
    pub fn create_topic(&self, topic: &str, partitions: i32) -> Result<(), KafkaError> {
        self.cluster()?.create_topic(topic, partitions, 1).map_err(|error| failed(topic, &error))
    }

    /// Appends records to a topic, each a key and a value, to the partition that the key's hash names.
    pub fn fill<K, V>(
        &self,
        topic: &str,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, KafkaError>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let before = self.starts(topic)?;
        let mut count = 0;
        for (key, value) in records {
            self.send(BaseRecord::to(topic).key(key.as_ref()).payload(value.as_ref()))?;
            count += 1;
        }
        self.finish(topic, &before)?;
        Ok(count)
    }

    /// Appends values without keys to a topic, to each of its partitions in turn.
    pub fn fill_values<V: AsRef<[u8]>>(
        &self,
        topic: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Result<u64, KafkaError> {
        let before = self.starts(topic)?;
        let mut count = 0;
        for (value, partition) in values.into_iter().zip((0..before.len()).cycle()) {
            let partition = partition as i32;
            self.send(BaseRecord::to(topic).partition(partition).payload(value.as_ref()))?;
            count += 1;
        }
        self.finish(topic, &before)?;
        Ok(count)
    }

    /// Refuses and ends all connections, as in an outage.
    pub fn take_down(&self) -> Result<(), KafkaError> {
        self.cluster()?.broker_down(-1).map_err(|error| failed("down", &error))
    }

    /// Ends the outage.
    pub fn bring_up(&self) -> Result<(), KafkaError> {
        self.cluster()?.broker_up(-1).map_err(|error| failed("up", &error))
    }

    fn cluster(&self) -> Result<MockCluster<'_, Deliveries>, KafkaError> {
        self.producer
            .client()
            .mock_cluster()
            .ok_or_else(|| KafkaError::failed("mock broker", "the client library has none"))
    }

    /// The first offsets of a topic's partitions.
    fn starts(&self, topic: &str) -> Result<Vec<i64>, KafkaError> {
        let client = self.producer.client();
        let metadata = client.fetch_metadata(Some(topic), TIMEOUT).map_err(|error| failed(topic, &error))?;
        let count = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
        if count == 0 {
            return Err(KafkaError::UnknownTopic { topic: topic.to_owned(), similar: Vec::new() });
        }
        (0..count)
            .map(|partition| {
                let marks = client.fetch_watermarks(topic, partition as i32, TIMEOUT);
                marks.map(|(low, _)| low).map_err(|error| failed(topic, &error))
            })
            .collect()
    }

    fn send(&self, record: BaseRecord<'_, [u8], [u8]>) -> Result<(), KafkaError> {
        let mut record = record;
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((error, again)) if error.rdkafka_error_code() == Some(Code::QueueFull) => {
                    std::thread::sleep(Duration::from_millis(1));
                    record = again;
                }
                Err((error, record)) => return Err(failed(record.topic, &error)),
            }
        }
    }

    /// Waits until all is written, and makes sure that nothing was deleted for it.
    fn finish(&self, topic: &str, before: &[i64]) -> Result<(), KafkaError> {
        self.producer.flush(TIMEOUT).map_err(|error| failed(topic, &error))?;
        if let Some(error) = self.producer.context().take() {
            return Err(failed(topic, &error));
        }
        let after = self.starts(topic)?;
        let deleted: i64 = after.iter().zip(before).map(|(after, before)| after - before).sum();
        if deleted > 0 {
            let reason = format!(
                "its {deleted} oldest records were deleted: a partition of the mock broker keeps about 5 MiB of \
                 compressed records; give the topic more than {} partitions",
                before.len()
            );
            return Err(KafkaError::failed(format!("mock broker, topic `{topic}`"), reason));
        }
        Ok(())
    }
}

impl fmt::Debug for MockBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockBroker").field("brokers", &self.brokers()).finish_non_exhaustive()
    }
}

fn failed(what: &str, error: &ClientError) -> KafkaError {
    KafkaError::failed(format!("mock broker, `{what}`"), error)
}

/// Remembers a record that could not be written.
#[derive(Default)]
struct Deliveries(Mutex<Option<ClientError>>);

impl Deliveries {
    fn take(&self) -> Option<ClientError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ClientContext for Deliveries {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, message: &str) {
        tracing::debug!("mock broker: {message}");
    }

    fn error(&self, _error: ClientError, reason: &str) {
        tracing::debug!("mock broker: {reason}");
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        }
    }
}
