//! One record as Kafka has it.

use std::{fmt, str};

/// A record with all that Kafka knows of it. It borrows from the batch.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message<'a> {
    /// The topic's name.
    pub topic: &'a str,
    /// The partition's number.
    pub partition: i32,
    /// The record's offset in its partition.
    pub offset: i64,
    /// When it was written, in milliseconds since 1970, by the clock of the producer or, if the topic is so
    /// configured, of the broker.
    pub timestamp: Option<i64>,
    /// The key, if it has one.
    pub key: Option<&'a [u8]>,
    /// The value; `None` for a tombstone, which says that its key was deleted.
    pub payload: Option<&'a [u8]>,
    headers: &'a [u8],
}

impl<'a> Message<'a> {
    pub(super) fn new(topic: &'a str, partition: i32, offset: i64, payload: Option<&'a [u8]>) -> Self {
        Message { topic, partition, offset, timestamp: None, key: None, payload, headers: &[] }
    }

    pub(super) fn with(mut self, timestamp: Option<i64>, key: Option<&'a [u8]>, headers: &'a [u8]) -> Self {
        self.timestamp = timestamp;
        self.key = key;
        self.headers = headers;
        self
    }

    /// The headers in their order, each a name and a value, which may be missing.
    pub fn headers(&self) -> Headers<'a> {
        Headers { rest: self.headers }
    }

    /// The value of the last header of this name, which is the one that counts. `None` if there is no such header
    /// or it has no value.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().filter(|(key, _)| *key == name).last().and_then(|(_, value)| value)
    }

    /// The value as text; `None` for a tombstone.
    pub fn text(&self) -> Option<Result<&'a str, str::Utf8Error>> {
        self.payload.map(str::from_utf8)
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("topic", &self.topic)
            .field("partition", &self.partition)
            .field("offset", &self.offset)
            .field("timestamp", &self.timestamp)
            .field("key", &self.key.map(String::from_utf8_lossy))
            .field("payload", &self.payload.map(String::from_utf8_lossy))
            .field("headers", &self.headers().count())
            .finish()
    }
}

/// The headers of a [`Message`].
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    rest: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Those that [`put_header`] has written.
    pub(super) fn read(encoded: &'a [u8]) -> Self {
        Headers { rest: encoded }
    }

    /// As [`put_header`] writes them.
    pub(super) fn encoded(&self) -> &'a [u8] {
        self.rest
    }
}

/// What stands for the length of a value that is missing.
const MISSING: u32 = u32::MAX;

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a str, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = take(self.rest)?;
        let (value, rest) = take(rest)?;
        self.rest = rest;
        Some((str::from_utf8(name?).ok()?, value))
    }
}

/// Appends a header in the form that [`Headers`] reads: each part behind its length. No header comes near 4 GiB: a
/// fetched one fits a response, whose size has 31 bits, and one to be written is refused with its record.
pub(super) fn put_header(into: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    put(into, Some(name.as_bytes()));
    put(into, value);
}

fn put(into: &mut Vec<u8>, part: Option<&[u8]>) {
    let length = part.map_or(MISSING, |part| part.len() as u32);
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(part.unwrap_or_default());
}

fn take(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    match u32::from_le_bytes(*length) {
        MISSING => Some((None, rest)),
        length => rest.split_at_checked(length as usize).map(|(part, rest)| (Some(part), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        let mut bytes = Vec::new();
        put_header(&mut bytes, "trace", Some(b"17"));
        put_header(&mut bytes, "", None);
        put_header(&mut bytes, "trace", Some(b""));
        let message = Message::new("t", 0, 0, None).with(None, None, &bytes);
        let headers: Vec<_> = message.headers().collect();
        assert_eq!(headers, [("trace", Some(&b"17"[..])), ("", None), ("trace", Some(&b""[..]))]);
        assert_eq!(message.header("trace"), Some(&b""[..]));
        assert_eq!(message.header("other"), None);
    }
}
