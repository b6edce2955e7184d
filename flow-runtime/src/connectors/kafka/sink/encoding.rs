//! Records on their way: in the buffer, and in the checkpoint.
//!
//! A record is a list of parts in any order, each a tag, a length and so many bytes, and the tag of its end. A part that
//! comes twice counts as it was said last, except headers, which add up. A key or a value that is missing has no part.

use rdkafka::message::{Header, OwnedHeaders};

use super::Payload;
use crate::{
    connectors::kafka::{Headers, message::put_header},
    error::BoxError,
};

const END: u8 = 0;
const KEY: u8 = 1;
const NO_KEY: u8 = 2;
const VALUE: u8 = 3;
const NO_VALUE: u8 = 4;
const HEADERS: u8 = 5;
const PARTITION: u8 = 6;
const TIMESTAMP: u8 = 7;

/// A Kafka record while a [`Form`](super::Form) describes it.
#[derive(Debug)]
pub struct Draft<'a> {
    bytes: &'a mut Vec<u8>,
    highest_partition: &'a mut i32,
}

impl<'a> Draft<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a mut Vec<u8>, highest_partition: &'a mut i32) -> Self {
        Draft { bytes, highest_partition }
    }

    #[inline]
    pub(super) fn finish(self) {
        self.bytes.push(END);
    }

    /// Sets the key.
    ///
    /// # Errors
    /// When it cannot be encoded.
    #[inline]
    pub fn key(&mut self, key: &(impl Payload + ?Sized)) -> Result<(), BoxError> {
        self.part(KEY, NO_KEY, key)
    }

    /// Sets the value.
    ///
    /// # Errors
    /// When it cannot be encoded.
    #[inline]
    pub fn value(&mut self, value: &(impl Payload + ?Sized)) -> Result<(), BoxError> {
        self.part(VALUE, NO_VALUE, value)
    }

    /// Adds a header.
    ///
    /// # Errors
    /// When its value cannot be encoded.
    pub fn header(&mut self, name: &str, value: &(impl Payload + ?Sized)) -> Result<(), BoxError> {
        let (mut bytes, mut header) = (Vec::new(), Vec::new());
        let some = value.put(&mut bytes)?;
        put_header(&mut header, name, some.then_some(&*bytes));
        self.headers(&header)
    }

    /// Adds headers in their encoded form.
    pub(super) fn headers(&mut self, headers: &[u8]) -> Result<(), BoxError> {
        if headers.is_empty() { Ok(()) } else { self.part(HEADERS, END, headers) }
    }

    /// Sets the partition. It has to exist.
    ///
    /// # Errors
    /// When it is negative.
    #[inline]
    pub fn partition(&mut self, partition: i32) -> Result<(), BoxError> {
        if partition < 0 {
            return Err(format!("there is no partition {partition}").into());
        }
        *self.highest_partition = partition.max(*self.highest_partition);
        self.part(PARTITION, END, &partition.to_le_bytes())
    }

    /// Sets the timestamp, in milliseconds since 1970.
    ///
    /// # Errors
    /// When it is not after 1970, which Kafka takes for none.
    #[inline]
    pub fn timestamp(&mut self, milliseconds: i64) -> Result<(), BoxError> {
        if milliseconds <= 0 {
            return Err(format!("{milliseconds} ms since 1970 is no timestamp of a kafka record").into());
        }
        self.part(TIMESTAMP, END, &milliseconds.to_le_bytes())
    }

    #[inline]
    fn part(&mut self, tag: u8, none: u8, payload: &(impl Payload + ?Sized)) -> Result<(), BoxError> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[tag, 0, 0, 0, 0]);
        let some = payload.put(self.bytes)?;
        let length = u32::try_from(self.bytes.len() - start - 5)?;
        self.bytes[start + 1..start + 5].copy_from_slice(&length.to_le_bytes());
        if !some {
            self.bytes.truncate(start);
            self.bytes.extend_from_slice(&[none, 0, 0, 0, 0]);
        }
        Ok(())
    }
}

/// A record, read back.
#[derive(Debug, Default)]
pub(super) struct Encoded<'a> {
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: Option<OwnedHeaders>,
    pub(super) partition: Option<i32>,
    pub(super) timestamp: Option<i64>,
}

/// The first record of `bytes`, and what follows it. `None` if they are none, or damaged.
#[inline]
pub(super) fn split_record(mut bytes: &[u8]) -> Option<(Encoded<'_>, &[u8])> {
    let mut record = Encoded::default();
    loop {
        let (tag, rest) = bytes.split_first()?;
        if *tag == END {
            return Some((record, rest));
        }
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        match *tag {
            KEY => record.key = Some(part),
            NO_KEY => record.key = None,
            VALUE => record.value = Some(part),
            NO_VALUE => record.value = None,
            HEADERS => record.headers = Some(add_headers(record.headers.take(), part)),
            PARTITION => record.partition = Some(i32::from_le_bytes(part.try_into().ok()?)),
            TIMESTAMP => record.timestamp = Some(i64::from_le_bytes(part.try_into().ok()?)),
            _ => return None,
        }
        bytes = rest;
    }
}

fn add_headers(before: Option<OwnedHeaders>, part: &[u8]) -> OwnedHeaders {
    let headers = before.unwrap_or_default();
    Headers::read(part).fold(headers, |headers, (key, value)| headers.insert(Header { key, value }))
}

#[cfg(test)]
mod tests {
    use rdkafka::message::Headers as _;

    use super::*;

    #[test]
    fn parts_come_back() {
        let (mut bytes, mut highest) = (Vec::new(), -1);
        let mut draft = Draft::new(&mut bytes, &mut highest);
        draft.value("first").unwrap();
        draft.header("a", "1").unwrap();
        draft.key(&7u8).unwrap();
        draft.header("b", &()).unwrap();
        draft.partition(3).unwrap();
        draft.timestamp(1234).unwrap();
        assert!(draft.partition(-1).is_err() && draft.timestamp(0).is_err());
        draft.value("last").unwrap();
        draft.finish();
        let mut draft = Draft::new(&mut bytes, &mut highest);
        draft.value("").unwrap();
        draft.key("k").unwrap();
        draft.key(&()).unwrap();
        draft.finish();
        assert_eq!(highest, 3);

        let (record, rest) = split_record(&bytes).unwrap();
        assert_eq!((record.key, record.value), (Some(&b"7"[..]), Some(&b"last"[..])));
        assert_eq!((record.partition, record.timestamp), (Some(3), Some(1234)));
        let headers = record.headers.unwrap();
        let headers: Vec<_> = headers.iter().map(|header| (header.key, header.value)).collect();
        assert_eq!(headers, [("a", Some(&b"1"[..])), ("b", None)]);

        let (record, rest) = split_record(rest).unwrap();
        assert_eq!((record.key, record.value), (None, Some(&b""[..])));
        assert!(record.headers.is_none() && rest.is_empty());
        for end in 1..bytes.len() {
            let _ = split_record(&bytes[..end]);
        }
    }
}
