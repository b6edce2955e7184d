//! How to reach the cluster.

use std::{collections::BTreeMap, fmt, time::Duration};

use rdkafka::{ClientConfig, config::RDKafkaLogLevel, error::KafkaError as ClientError};

use super::KafkaError;

/// Where a source begins in the partitions of which no checkpoint knows the offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// At the oldest record that the broker still has. The default of a source without a
    /// [group](super::KafkaSource::group).
    #[default]
    Earliest,
    /// At the end: only what is written after the start of the job.
    Latest,
    /// Where the source's [group](super::KafkaSource::group) stopped, and at the oldest record in partitions for
    /// which the group has no offset. The default of a source with a group.
    Committed,
    /// At the first record written at or after this time, in milliseconds since 1970; at the end if there is none.
    Timestamp(i64),
}

/// What librdkafka is told to make it follow the checkpoint, and what to use instead of setting it.
const RESERVED: [(&str, &str); 10] = [
    ("bootstrap.servers", "use `.brokers(..)`"),
    ("metadata.broker.list", "use `.brokers(..)`"),
    ("group.id", "use `.group(..)`"),
    ("auto.offset.reset", "use `.start(..)`; an offset that is gone later is an error, never a jump"),
    ("enable.auto.commit", "offsets are kept in the checkpoint"),
    ("enable.auto.offset.store", "offsets are kept in the checkpoint"),
    ("enable.partition.eof", "the source needs it to find the end of a partition"),
    ("group.instance.id", "the source takes no part in consumer groups"),
    ("group.protocol", "the source takes no part in consumer groups"),
    ("partition.assignment.strategy", "the source takes no part in consumer groups"),
];

/// Addresses, group and properties. Its `Debug` form shows no secret.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) brokers: String,
    pub(super) group: Option<String>,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) connect_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            brokers: String::new(),
            group: None,
            properties: BTreeMap::new(),
            connect_timeout: Duration::from_secs(15),
        }
    }
}

impl Settings {
    /// The configuration of a consumer that reads what it is assigned and decides nothing by itself.
    pub(super) fn client_config(&self, client_id: &str) -> Result<ClientConfig, KafkaError> {
        if self.brokers.trim().is_empty() {
            return Err(KafkaError::NoBrokers);
        }
        let mut config = ClientConfig::new();
        config
            .set_log_level(RDKafkaLogLevel::Info)
            .set("bootstrap.servers", &self.brokers)
            // librdkafka assigns partitions only where a group is named. We never join it.
            .set("group.id", self.group.as_deref().unwrap_or("flow"))
            .set("client.id", client_id)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("enable.partition.eof", "true")
            .set("allow.auto.create.topics", "false")
            .set("isolation.level", "read_committed")
            // With the default of a second, a reader that empties the queue faster than that starves.
            .set("fetch.queue.backoff.ms", "10")
            // A broker that was restarted should be found soon.
            .set("reconnect.backoff.max.ms", "2000");
        for (key, value) in &self.properties {
            if let Some((_, instead)) = RESERVED.iter().find(|(reserved, _)| reserved == key) {
                return Err(KafkaError::Property { key: key.clone(), reason: (*instead).to_owned() });
            }
            config.set(key, value);
        }
        Ok(config)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: BTreeMap<&str, &str> = self
            .properties
            .iter()
            .map(|(key, value)| (key.as_str(), if is_secret(key) { "(secret)" } else { value.as_str() }))
            .collect();
        f.debug_struct("Settings")
            .field("brokers", &self.brokers)
            .field("group", &self.group)
            .field("properties", &shown)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// Whether a property's value must not be shown. Too much rather than too little.
fn is_secret(key: &str) -> bool {
    ["password", "secret", "token", "credential", "pem", "jaas", "oauthbearer", "ssl.key", "sasl.username"]
        .iter()
        .any(|word| key.contains(word))
}

/// Why the client library does not take the configuration, without the values that may be secret.
pub(super) fn refused(error: ClientError) -> KafkaError {
    match error {
        ClientError::ClientConfig(_, text, key, _) => {
            let reason = if needs_tls(&text) {
                NEEDS_TLS.to_owned()
            } else if is_secret(&key) {
                "its value is not valid".to_owned()
            } else {
                text
            };
            KafkaError::Property { key, reason }
        }
        ClientError::ClientCreation(text) if needs_tls(&text) => {
            KafkaError::Property { key: "security.protocol".to_owned(), reason: NEEDS_TLS.to_owned() }
        }
        other => KafkaError::failed("kafka client", other),
    }
}

const NEEDS_TLS: &str = "it needs TLS: build with the feature `kafka-tls`";

fn needs_tls(text: &str) -> bool {
    text.contains("OpenSSL not available") || text.contains("requires OpenSSL")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(key: &str, value: &str) -> Settings {
        let mut settings = Settings { brokers: "localhost:9092".into(), ..Settings::default() };
        settings.properties.insert(key.into(), value.into());
        settings
    }

    #[test]
    fn secrets_are_not_shown() {
        for key in ["sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"] {
            let shown = format!("{:?}", settings(key, "hunter2"));
            assert!(shown.contains(key) && !shown.contains("hunter2"), "{shown}");
        }
        assert!(format!("{:?}", settings("fetch.min.bytes", "17")).contains("17"));
    }

    #[test]
    fn what_belongs_to_the_source_is_refused() {
        let error = settings("enable.auto.commit", "true").client_config("test").unwrap_err().to_string();
        assert_eq!(error, "kafka property `enable.auto.commit`: offsets are kept in the checkpoint");
    }
}
