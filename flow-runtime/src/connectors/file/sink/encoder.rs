//! How records become the bytes of a file, on the worker.

use std::{fmt, io::Write as _, path::PathBuf};

use serde::Serialize;

use super::FileSink;
use crate::{
    connectors::text::BATCH_BYTES,
    error::BoxError,
    sink::{SinkBuffer, Write},
};

/// A form of records in a file; what it takes are the `impl`s of [`Write`] for [`FileBuffer`].
pub trait Encoder: Clone + fmt::Debug + Send + Sync + 'static {
    /// The extension of its files.
    fn extension(&self) -> &'static str;
}

/// Encoded records on their way into a file.
#[derive(Debug)]
pub struct FileBuffer<E> {
    pub(super) encoder: E,
    pub(super) bytes: Vec<u8>,
    pub(super) records: usize,
    /// What each file begins with.
    pub(super) header: Vec<u8>,
    /// How many columns the records have, once known.
    pub(super) columns: Option<usize>,
}

impl<E: Encoder> FileBuffer<E> {
    pub(super) fn new(encoder: E) -> Self {
        FileBuffer { encoder, bytes: Vec::new(), records: 0, header: Vec::new(), columns: None }
    }

    /// Counts the record that `encoded` speaks of; takes back what a failed one has left.
    pub(super) fn finish<R>(&mut self, start: usize, encoded: Result<R, BoxError>) -> Result<(), BoxError> {
        match encoded {
            Ok(_) => {
                self.bytes.push(b'\n');
                self.records += 1;
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(start);
                Err(error)
            }
        }
    }
}

impl<E: Encoder> SinkBuffer for FileBuffer<E> {
    fn len(&self) -> usize {
        self.records
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.records = 0;
    }
}

/// Writes each record with [`Display`](fmt::Display) on a line of its own, into `.txt` files in `dir`.
///
/// ```
/// use flow_runtime::connectors::file;
/// let sink = file::to_lines("out").roll_at(128 << 20);
/// ```
pub fn to_lines(dir: impl Into<PathBuf>) -> FileSink<Lines> {
    FileSink::new(dir, Lines)
}

/// The form of [`to_lines`].
#[derive(Clone, Copy, Debug)]
pub struct Lines;

impl Encoder for Lines {
    fn extension(&self) -> &'static str {
        "txt"
    }
}

impl<T: fmt::Display> Write<T> for FileBuffer<Lines> {
    #[inline]
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        let start = self.bytes.len();
        let encoded = write!(self.bytes, "{record}").map_err(Into::into);
        self.finish(start, encoded)
    }
}

/// Writes each record as JSON on a line of its own, into `.jsonl` files in `dir`.
///
/// ```
/// use flow_runtime::connectors::file;
/// let sink = file::to_json_lines("out");
/// ```
pub fn to_json_lines(dir: impl Into<PathBuf>) -> FileSink<JsonLines> {
    FileSink::new(dir, JsonLines)
}

/// The form of [`to_json_lines`].
#[derive(Clone, Copy, Debug)]
pub struct JsonLines;

impl Encoder for JsonLines {
    fn extension(&self) -> &'static str {
        "jsonl"
    }
}

impl<T: Serialize> Write<T> for FileBuffer<JsonLines> {
    #[inline]
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        let start = self.bytes.len();
        let encoded = serde_json::to_writer(&mut self.bytes, &record)
            .map_err(|error| format!("cannot write a record as json: {error}").into());
        self.finish(start, encoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_what_displays() {
        let mut buffer = FileBuffer::new(Lines);
        let owned = String::from("b");
        buffer.write("a").unwrap();
        buffer.write(owned.as_str()).unwrap();
        buffer.write(7).unwrap();
        assert_eq!((buffer.bytes.as_slice(), buffer.len()), (&b"a\nb\n7\n"[..], 3));
        buffer.clear();
        assert!(buffer.is_empty() && buffer.bytes.capacity() > 0);
    }

    #[test]
    fn json_takes_what_serializes_and_takes_back_a_failure() {
        let mut buffer = FileBuffer::new(JsonLines);
        buffer.write(("a\n", 1)).unwrap();
        let unkeyed = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(buffer.write(("lost", &unkeyed)).is_err());
        assert_eq!(buffer.bytes, b"[\"a\\n\",1]\n");
    }
}
