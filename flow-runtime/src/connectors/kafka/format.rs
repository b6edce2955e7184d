//! From a Kafka record to an item of the pipeline.

use std::{fmt, marker::PhantomData, str};

use serde::de::DeserializeOwned;

use super::Message;
use crate::error::BoxError;

/// Makes an item of the pipeline out of a Kafka record, which it may borrow from.
///
/// Implement it for Avro, Protobuf or what else your records are, and read them with [`with_format`]. The format
/// runs on the worker, in the same loop as the operators that follow.
///
/// ```
/// use flow_runtime::{connectors::kafka::{self, Format, Message}, error::BoxError};
///
/// /// Eight bytes, big endian.
/// struct Counter;
///
/// impl Format for Counter {
///     type Item<'a> = u64;
///
///     fn read<'a>(&self, message: Message<'a>) -> Result<Option<u64>, BoxError> {
///         let Some(payload) = message.payload else { return Ok(None) };
///         Ok(Some(u64::from_be_bytes(payload.try_into()?)))
///     }
/// }
///
/// let source = kafka::with_format("counters", Counter).brokers("localhost:9092");
/// ```
///
/// [`with_format`]: super::with_format
pub trait Format: Send + Sync + 'static {
    /// What comes out.
    type Item<'a>;

    /// Whether [`read`](Format::read) looks at key, timestamp and headers too. Without them, which is the default,
    /// a message has only its place and its payload, and costs less to fetch.
    const WHOLE: bool = false;

    /// The item of a record; `None` to pass over it; an error if it is invalid, which fails the job unless
    /// [`skip_invalid`](super::KafkaSource::skip_invalid) is set.
    fn read<'a>(&self, message: Message<'a>) -> Result<Option<Self::Item<'a>>, BoxError>;
}

/// The format of [`lines`](super::lines).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines;

impl Format for Lines {
    type Item<'a> = &'a str;

    #[inline]
    fn read<'a>(&self, message: Message<'a>) -> Result<Option<&'a str>, BoxError> {
        match message.payload.map(str::from_utf8) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(error)) => Err(format!("the value is not UTF-8: {error}").into()),
        }
    }
}

/// The format of [`bytes`](super::bytes()).
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes;

impl Format for Bytes {
    type Item<'a> = &'a [u8];

    #[inline]
    fn read<'a>(&self, message: Message<'a>) -> Result<Option<&'a [u8]>, BoxError> {
        Ok(message.payload)
    }
}

/// The format of [`json`](super::json).
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T> Json<T> {
    /// The format.
    pub const fn new() -> Self {
        Json(PhantomData)
    }
}

impl<T> Default for Json<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Json")
    }
}

impl<T: DeserializeOwned + 'static> Format for Json<T> {
    type Item<'a> = T;

    #[inline]
    fn read<'a>(&self, message: Message<'a>) -> Result<Option<T>, BoxError> {
        match message.payload.map(serde_json::from_slice) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(error)) => Err(format!("the value is not the expected JSON: {error}").into()),
        }
    }
}

/// The format of [`messages`](super::messages).
#[derive(Clone, Copy, Debug, Default)]
pub struct Messages;

impl Format for Messages {
    type Item<'a> = Message<'a>;
    const WHOLE: bool = true;

    #[inline]
    fn read<'a>(&self, message: Message<'a>) -> Result<Option<Message<'a>>, BoxError> {
        Ok(Some(message))
    }
}
