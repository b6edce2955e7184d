//! Reads and writes topics of [Apache Kafka](https://kafka.apache.org).
//!
//! ```no_run
//! use flow_runtime::connectors::kafka;
//!
//! let words = kafka::lines("words").brokers("localhost:9092").group("word-count");
//! let orders = kafka::bytes(["orders-eu", "orders-us"]).brokers("a:9092,b:9092").bounded();
//! let counts = kafka::to("counts").brokers("localhost:9092");
//! ```
//!
//! What follows is about sources; [`sink`] tells about sinks.
//!
//! # Offsets
//!
//! A split is a partition and its next offset, and lives in the job's checkpoint. The source assigns itself its
//! partitions and takes no part in a consumer group, so that nothing but the checkpoint decides where a restored job
//! goes on. A first start begins where [`start`](KafkaSource::start) says.
//!
//! If the broker no longer has the offset that a split wants, because retention deleted it or the topic was made
//! anew, the job fails and says so. It never jumps.
//!
//! # Records
//!
//! [`lines`] and [`bytes()`] give the value of each record, borrowed from the batch; [`json`] parses it; [`messages`]
//! gives the record with key, headers, offset and timestamp; and [`with_format`] reads what you describe.
//!
//! - A record that the format cannot read fails the job with topic, partition and offset, unless
//!   [`skip_invalid`](KafkaSource::skip_invalid) is set.
//! - A tombstone, a record without a value, says that its key was deleted. [`lines`], [`bytes()`] and [`json`] pass
//!   over it, since they have nothing to give; [`messages`] shows it.
//! - Records of transactions that are open or were aborted are not read, unless the property `isolation.level` is
//!   set to `read_uncommitted`.
//!
//! # Outages
//!
//! While brokers are down the source waits and the client library reconnects. A topic that does not exist, a refused
//! login or a missing right ends the job, and so do brokers that do not answer within
//! [`connect_timeout`](KafkaSource::connect_timeout) of its start.
//!
//! # Trying it without a cluster
//!
//! [`mock::MockBroker`] is a broker inside the process.

mod batch;
mod client;
mod config;
mod error;
mod format;
mod message;
pub mod mock;
mod reader;
pub mod sink;
mod source;
mod split;

use serde::de::DeserializeOwned;

pub use batch::KafkaBatch;
pub use config::Start;
pub use error::KafkaError;
pub use format::{Bytes, Format, Json, Lines, Messages};
pub use message::{Headers, Message};
pub use reader::KafkaReader;
pub use sink::{AsJson, Compression, Draft, Form, KafkaSink, Payload, Record, Recovery, to};
pub use source::{AtEnd, Endless, IntoTopics, KafkaSource};
pub use split::KafkaSplit;

/// Reads the values of a topic, or of several, as text: one `&str` for each record, with whatever it holds.
///
/// ```no_run
/// # use flow_runtime::connectors::kafka;
/// let lines = kafka::lines("clicks").brokers("localhost:9092");
/// ```
pub fn lines(topics: impl IntoTopics) -> KafkaSource<Lines> {
    KafkaSource::new(topics, Lines)
}

/// Reads the values as they are: one `&[u8]` for each record.
///
/// A later operator may parse them into something that borrows from them:
///
/// ```no_run
/// # use flow_runtime::connectors::kafka;
/// #[derive(serde::Deserialize)]
/// struct Click<'a> {
///     #[serde(borrow)]
///     page: &'a str,
/// }
///
/// let clicks = kafka::bytes("clicks").brokers("localhost:9092");
/// let parse = |value| serde_json::from_slice::<Click<'_>>(value);
/// # let _ = parse(b"");
/// ```
pub fn bytes(topics: impl IntoTopics) -> KafkaSource<Bytes> {
    KafkaSource::new(topics, Bytes)
}

/// Reads the values as JSON: one `T` for each record.
///
/// ```no_run
/// # use flow_runtime::connectors::kafka;
/// #[derive(serde::Deserialize)]
/// struct Click {
///     page: String,
/// }
///
/// let clicks = kafka::json::<Click>("clicks").brokers("localhost:9092").skip_invalid();
/// ```
pub fn json<T: DeserializeOwned + 'static>(topics: impl IntoTopics) -> KafkaSource<Json<T>> {
    KafkaSource::new(topics, Json::new())
}

/// Reads whole records: one [`Message`] for each, with key, value, headers, offset and timestamp.
///
/// ```no_run
/// # use flow_runtime::connectors::kafka;
/// let changes = kafka::messages("customers").brokers("localhost:9092");
/// let is_deletion = |message: kafka::Message<'_>| message.payload.is_none();
/// ```
pub fn messages(topics: impl IntoTopics) -> KafkaSource<Messages> {
    KafkaSource::new(topics, Messages)
}

/// Reads records in a [`Format`] of your own.
pub fn with_format<F: Format>(topics: impl IntoTopics, format: F) -> KafkaSource<F> {
    KafkaSource::new(topics, format)
}
