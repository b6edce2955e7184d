//! What a sink was told, and what the client library is told because of it.

use std::{collections::BTreeMap, fmt, time::Duration};

use rdkafka::{ClientConfig, config::RDKafkaLogLevel};

use crate::connectors::kafka::{KafkaError, config::Settings};

/// How to compress what goes to the brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all; the default.
    None,
    /// The oldest, and the slowest.
    Gzip,
    /// Fast.
    Snappy,
    /// Fast, and a little smaller.
    Lz4,
    /// The smallest.
    Zstd,
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// What to do when the job starts and the markers in the cluster do not fit its checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// Do not start, and say why.
    #[default]
    Strict,
    /// Write what may be written already, rather than lose it: records may come twice.
    Repeat,
    /// Where a marker is gone, leave out the records that the checkpoint holds: they are lost if they were not written.
    Skip,
}

/// What is always there, and what to use instead of setting it.
const RESERVED: [(&str, &str); 17] = [
    ("bootstrap.servers", "use `.brokers(..)`"),
    ("metadata.broker.list", "use `.brokers(..)`"),
    ("transactional.id", "it has to differ between subtasks: use `.transactional_id_prefix(..)`"),
    ("transaction.timeout.ms", "use `.transaction_timeout(..)`"),
    ("enable.idempotence", "without it a retry may repeat and reorder records"),
    ("acks", "it is `all`: with less, a broker that fails takes acknowledged records with it"),
    (
        "request.required.acks",
        "it is `all`: with less, a broker that fails takes acknowledged records with it",
    ),
    ("queuing.strategy", "records keep their order"),
    ("delivery.report.only.error", "the sink needs it as it is"),
    ("group.id", "the sink keeps its markers in groups of its own: use `.transactional_id_prefix(..)`"),
    ("group.instance.id", "the sink takes no part in consumer groups"),
    ("isolation.level", "the sink reads its own markers only, and committed ones"),
    ("enable.auto.commit", "the sink commits markers with its transactions only"),
    ("auto.offset.reset", "the sink reads no records"),
    ("compression.type", "use `.compression(..)`"),
    ("compression.codec", "use `.compression(..)`"),
    ("test.mock.num.brokers", "use `kafka::mock::MockBroker`"),
];

/// Properties that only a producer has; a consumer would warn of them.
const PRODUCER: [&str; 15] = [
    "batch.",
    "compression.",
    "delivery.",
    "dr_",
    "enable.gapless.guarantee",
    "linger.ms",
    "message.send.max.retries",
    "message.timeout.ms",
    "msg_order_cmp",
    "partitioner",
    "produce.",
    "queue.buffering.",
    "request.timeout.ms",
    "retries",
    "sticky.partitioning.linger.ms",
];

/// What a sink, its writers and its committers share.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) topic: String,
    pub(super) brokers: String,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) connect_timeout: Duration,
    pub(super) compression: Compression,
    pub(super) transaction_timeout: Duration,
    pub(super) prefix: String,
    pub(super) recovery: Recovery,
}

impl Setup {
    pub(super) fn new(topic: String) -> Self {
        Setup {
            topic,
            brokers: String::new(),
            properties: BTreeMap::new(),
            connect_timeout: Duration::from_secs(15),
            compression: Compression::None,
            transaction_timeout: Duration::from_secs(60),
            prefix: "flow".to_owned(),
            recovery: Recovery::default(),
        }
    }

    /// Refuses what would break the guarantee.
    pub(super) fn check(&self) -> Result<(), KafkaError> {
        if self.topic.is_empty() {
            return Err(KafkaError::NoTopic);
        }
        if self.brokers.trim().is_empty() {
            return Err(KafkaError::NoBrokers);
        }
        for key in self.properties.keys() {
            if let Some((_, instead)) = RESERVED.iter().find(|(reserved, _)| reserved == key) {
                return Err(KafkaError::Property { key: key.clone(), reason: (*instead).to_owned() });
            }
        }
        Ok(())
    }

    /// For a client that asks, and for one that reads the marker of `group`.
    pub(super) fn consumer(&self, group: Option<String>) -> Settings {
        let mut properties = self.properties.clone();
        properties.retain(|key, _| !PRODUCER.iter().any(|of_producer| key.starts_with(of_producer)));
        Settings { brokers: self.brokers.clone(), group, properties, connect_timeout: self.connect_timeout }
    }

    /// For a client that asks about configurations, which to the client library is a producer.
    pub(super) fn admin(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set_log_level(RDKafkaLogLevel::Error)
            .set("bootstrap.servers", &self.brokers)
            .set("client.id", "flow-check");
        for (key, value) in &self.properties {
            config.set(key, value);
        }
        config
    }

    /// For a producer. `largest` is the size of the largest batch that the topic takes.
    pub(super) fn producer(&self, largest: usize, transactional_id: Option<&str>) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set_log_level(RDKafkaLogLevel::Info)
            .set("bootstrap.servers", &self.brokers)
            .set("client.id", "flow-sink")
            .set("enable.idempotence", "true")
            // Nothing to do for a record that arrived.
            .set("delivery.report.only.error", "true")
            .set("compression.type", self.compression.name())
            // Equal keys go where the Java clients would send them.
            .set("partitioner", "murmur2_random")
            .set("message.max.bytes", largest.to_string())
            .set("batch.size", largest.min(1_000_000).to_string())
            // The memory that a sink may take for what is under way.
            .set("queue.buffering.max.kbytes", "65536")
            // A broker that was restarted should be found soon.
            .set("reconnect.backoff.max.ms", "2000");
        if let Some(id) = transactional_id {
            config
                .set("transactional.id", id)
                .set("transaction.timeout.ms", self.transaction_timeout.as_millis().to_string());
        }
        for (key, value) in &self.properties {
            config.set(key, value);
        }
        config
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("topic", &self.topic)
            // Hides secrets.
            .field("settings", &Settings { properties: self.properties.clone(), ..self.consumer(None) })
            .field("compression", &self.compression)
            .field("transaction_timeout", &self.transaction_timeout)
            .field("prefix", &self.prefix)
            .field("recovery", &self.recovery)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(key: &str, value: &str) -> Setup {
        let mut setup = Setup::new("orders".into());
        setup.brokers = "localhost:9092".into();
        setup.properties.insert(key.into(), value.into());
        setup
    }

    #[test]
    fn what_would_break_the_guarantee_is_refused() {
        let error = setup("acks", "1").check().unwrap_err().to_string();
        assert!(error.starts_with("kafka property `acks`: it is `all`"), "{error}");
        assert!(setup("linger.ms", "50").check().is_ok());
    }

    #[test]
    fn properties_go_where_they_belong() {
        let setup = setup("linger.ms", "50");
        assert!(setup.consumer(None).properties.is_empty());
        let config = setup.producer(1000, Some("id"));
        assert_eq!((config.get("linger.ms"), config.get("batch.size")), (Some("50"), Some("1000")));
        assert_eq!(config.get("transaction.timeout.ms"), Some("60000"));
        assert_eq!(setup.producer(1000, None).get("transactional.id"), None);
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?}", setup("sasl.password", "hunter2"));
        assert!(shown.contains("sasl.password") && !shown.contains("hunter2"), "{shown}");
    }
}
