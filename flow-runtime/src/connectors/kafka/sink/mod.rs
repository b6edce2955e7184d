//! The sink of topics.
//!
//! # Exactly once, by a marker
//!
//! librdkafka cannot finish the transaction of a process that is dead, so a transaction that waits for its checkpoint
//! would be lost with the process. Instead the records of an epoch are staged, compressed, in the checkpoint, and produced
//! once it is complete, in **one** transaction that also moves a marker: the number of the epoch, committed as the offset
//! of a consumer group that belongs to the job, the sink and the subtask alone. So:
//!
//! - After a crash, wherever it was, the records that the checkpoint holds are produced if and only if the marker is
//!   behind.
//! - Between checkpoints no transaction is open, and none is opened for an epoch without records.
//! - A run of the job takes the markers over when it starts. An earlier one that was thought dead is fenced.
//! - A job that starts from an older checkpoint than the markers know is refused, and so is one whose markers are gone
//!   while its checkpoint holds records, each with a way to go on. See [`Recovery`].
//!
//! Readers have to ask for committed records (`isolation.level=read_committed`, which is the default of
//! [sources](super::KafkaSource) here, and of librdkafka, but not of the Java client). They see records one checkpoint
//! interval late.
//!
//! What is staged takes memory: the records of one checkpoint interval, compressed, and once more for each checkpoint
//! whose records the brokers have not yet taken. If that is too much, let [`at_least_once`](KafkaSink::at_least_once)
//! write as records come.
//!
//! # Order
//!
//! Records of one subtask with equal keys keep their order.
//!
//! # When the brokers say no
//!
//! While they are away a commit is tried again and again. What they would refuse for good (a record that is too large, a
//! partition that does not exist) fails the job before it gets into a checkpoint.

mod buffer;
mod builder;
mod check;
mod committer;
mod direct;
mod encoding;
mod form;
mod handle;
mod marker;
mod payload;
mod producer;
mod record;
mod recover;
mod session;
mod setup;
mod writer;

pub use buffer::KafkaBuffer;
pub use builder::{Idempotent, KafkaSink, Transactional};
pub use committer::KafkaCommitter;
pub use direct::{DirectWriter, NoCommitter};
pub use encoding::Draft;
pub use form::{Form, JsonRecords, JsonValues, Values, WithHeader, WithKey, WithPartition, WithTimestamp};
pub use handle::Staged;
pub use payload::{AsJson, Payload};
pub use record::Record;
pub use setup::{Compression, Recovery};
pub use writer::StagingWriter;

/// Writes to a topic, exactly once unless told otherwise.
///
/// By itself it takes values (text, bytes, integers), pairs of key and value, [`Record`]s with headers, partition and
/// timestamp, and whole [`Message`](super::Message)s as a source reads them. [`json`](KafkaSink::json) takes anything
/// that is `Serialize`.
///
/// ```
/// use flow_runtime::connectors::kafka::{self, Compression};
///
/// let sink = kafka::to("counts").brokers("localhost:9092").compression(Compression::Lz4);
/// ```
pub fn to(topic: impl Into<String>) -> KafkaSink<Values> {
    KafkaSink::new(topic.into())
}
