//! From a record of the pipeline to a record of Kafka.

use serde::Serialize;

use super::{AsJson, Draft, Payload, Record};
use crate::{connectors::kafka::Message, error::BoxError};

/// How a record of type `T` becomes a Kafka record. It runs on the worker, in the same loop as the operators before.
///
/// Implement it for a format of your own, and write with [`form`](super::KafkaSink::form):
///
/// ```
/// use flow_runtime::{connectors::kafka::{self, Draft, Form}, error::BoxError};
///
/// /// Eight bytes, big endian.
/// struct Counter;
///
/// impl Form<u64> for Counter {
///     fn describe(&self, record: &u64, draft: &mut Draft<'_>) -> Result<(), BoxError> {
///         draft.value(&record.to_be_bytes())
///     }
/// }
///
/// let sink = kafka::to("counters").brokers("localhost:9092").form(Counter);
/// ```
#[diagnostic::on_unimplemented(
    message = "the kafka sink cannot write records of type `{T}` like this",
    note = "by itself it writes text, bytes, integers, `(key, value)` of those, and `kafka::Record`",
    note = "`.json()` writes anything that is `Serialize`, and `.json_values()` such values with a key"
)]
pub trait Form<T>: Send + Sync + 'static {
    /// Says what the record's key, value and headers are. What is said twice counts as it was said last.
    ///
    /// # Errors
    /// When the record cannot be encoded; the job fails, and names it.
    fn describe(&self, record: &T, draft: &mut Draft<'_>) -> Result<(), BoxError>;
}

/// The form of [`to`](super::to): values as they are, pairs of key and value, and whole records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values;

impl<V: Payload> Form<V> for Values {
    #[inline]
    fn describe(&self, value: &V, draft: &mut Draft<'_>) -> Result<(), BoxError> {
        draft.value(value)
    }
}

impl<K: Payload, V: Payload> Form<(K, V)> for Values {
    #[inline]
    fn describe(&self, (key, value): &(K, V), draft: &mut Draft<'_>) -> Result<(), BoxError> {
        draft.key(key)?;
        draft.value(value)
    }
}

impl<K: Payload, V: Payload> Form<Record<K, V>> for Values {
    #[inline]
    fn describe(&self, record: &Record<K, V>, draft: &mut Draft<'_>) -> Result<(), BoxError> {
        record.check()?;
        draft.key(&record.key)?;
        draft.value(&record.value)?;
        draft.headers(&record.headers)?;
        if let Some(partition) = record.partition {
            draft.partition(partition)?;
        }
        if let Some(timestamp) = record.timestamp {
            draft.timestamp(timestamp)?;
        }
        Ok(())
    }
}

/// As it was read, with key, headers and timestamp; its partition is chosen anew.
impl Form<Message<'_>> for Values {
    #[inline]
    fn describe(&self, message: &Message<'_>, draft: &mut Draft<'_>) -> Result<(), BoxError> {
        draft.key(&message.key)?;
        draft.value(&message.payload)?;
        draft.headers(message.headers().encoded())?;
        match message.timestamp.filter(|timestamp| *timestamp > 0) {
            Some(timestamp) => draft.timestamp(timestamp),
            None => Ok(()),
        }
    }
}

/// The form of [`json`](super::KafkaSink::json).
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonRecords;

impl<T: Serialize> Form<T> for JsonRecords {
    #[inline]
    fn describe(&self, record: &T, draft: &mut Draft<'_>) -> Result<(), BoxError> {
        draft.value(&AsJson(record))
    }
}

/// The form of [`json_values`](super::KafkaSink::json_values).
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonValues;

impl<K: Payload, V: Serialize> Form<(K, V)> for JsonValues {
    #[inline]
    fn describe(&self, (key, value): &(K, V), draft: &mut Draft<'_>) -> Result<(), BoxError> {
        draft.key(key)?;
        draft.value(&AsJson(value))
    }
}

/// A form with a key; made by [`key`](super::KafkaSink::key).
#[derive(Clone, Copy, Debug)]
pub struct WithKey<I, F>(pub(super) I, pub(super) F);

impl<T, I, F, K> Form<T> for WithKey<I, F>
where
    I: Form<T>,
    F: Fn(&T) -> K + Send + Sync + 'static,
    K: Payload,
{
    #[inline]
    fn describe(&self, record: &T, draft: &mut Draft<'_>) -> Result<(), BoxError> {
        self.0.describe(record, draft)?;
        draft.key(&(self.1)(record))
    }
}

/// A form with one more header; made by [`header`](super::KafkaSink::header).
#[derive(Clone, Debug)]
pub struct WithHeader<I, F>(pub(super) I, pub(super) String, pub(super) F);

impl<T, I, F, H> Form<T> for WithHeader<I, F>
where
    I: Form<T>,
    F: Fn(&T) -> H + Send + Sync + 'static,
    H: Payload,
{
    #[inline]
    fn describe(&self, record: &T, draft: &mut Draft<'_>) -> Result<(), BoxError> {
        self.0.describe(record, draft)?;
        draft.header(&self.1, &(self.2)(record))
    }
}

/// A form with a partition; made by [`partition`](super::KafkaSink::partition).
#[derive(Clone, Copy, Debug)]
pub struct WithPartition<I, F>(pub(super) I, pub(super) F);

impl<T, I, F> Form<T> for WithPartition<I, F>
where
    I: Form<T>,
    F: Fn(&T) -> i32 + Send + Sync + 'static,
{
    #[inline]
    fn describe(&self, record: &T, draft: &mut Draft<'_>) -> Result<(), BoxError> {
        self.0.describe(record, draft)?;
        draft.partition((self.1)(record))
    }
}

/// A form with a timestamp; made by [`timestamp`](super::KafkaSink::timestamp).
#[derive(Clone, Copy, Debug)]
pub struct WithTimestamp<I, F>(pub(super) I, pub(super) F);

impl<T, I, F> Form<T> for WithTimestamp<I, F>
where
    I: Form<T>,
    F: Fn(&T) -> i64 + Send + Sync + 'static,
{
    #[inline]
    fn describe(&self, record: &T, draft: &mut Draft<'_>) -> Result<(), BoxError> {
        self.0.describe(record, draft)?;
        draft.timestamp((self.1)(record))
    }
}
