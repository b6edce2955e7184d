//! A record with everything that Kafka lets one say.

use super::Payload;
use crate::{connectors::kafka::message::put_header, error::BoxError};

/// A record to be written: a value, and what may go with it.
///
/// ```
/// use flow_runtime::connectors::kafka::Record;
///
/// let shipped = Record::new("shipped").key(17).header("trace", "4bf92f").timestamp(1_700_000_000_000);
/// let deleted = Record::tombstone().key(17);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Record<K, V> {
    pub(super) key: K,
    pub(super) value: V,
    /// As [`Headers`](crate::connectors::kafka::Headers) reads them.
    pub(super) headers: Vec<u8>,
    pub(super) failed: Option<String>,
    pub(super) partition: Option<i32>,
    pub(super) timestamp: Option<i64>,
}

impl<V: Payload> Record<(), V> {
    /// A record with this value, and without a key.
    pub fn new(value: V) -> Self {
        Record { key: (), value, headers: Vec::new(), failed: None, partition: None, timestamp: None }
    }
}

impl Record<(), ()> {
    /// A record without a value, which says that its key is deleted.
    pub fn tombstone() -> Self {
        Record::new(())
    }
}

impl<K: Payload, V: Payload> Record<K, V> {
    /// The key. Records with equal keys go to the same partition and keep their order.
    pub fn key<Q: Payload>(self, key: Q) -> Record<Q, V> {
        let Record { value, headers, failed, partition, timestamp, .. } = self;
        Record { key, value, headers, failed, partition, timestamp }
    }

    /// Adds a header. There may be several of one name.
    pub fn header(mut self, name: &str, value: impl Payload) -> Self {
        let mut bytes = Vec::new();
        match value.put(&mut bytes) {
            Ok(some) => put_header(&mut self.headers, name, some.then_some(&*bytes)),
            // Told when the record is written, which is where errors are asked for.
            Err(error) => self.failed = Some(format!("header `{name}`: {error}")),
        }
        self
    }

    /// The partition, instead of the one that the partitioner would choose. It has to exist.
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// The timestamp, in milliseconds since 1970. Otherwise it is the time at which the record is sent, which for an
    /// exactly-once sink is after the checkpoint.
    pub fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }

    pub(super) fn check(&self) -> Result<(), BoxError> {
        match &self.failed {
            None => Ok(()),
            Some(why) => Err(why.as_str().into()),
        }
    }
}
