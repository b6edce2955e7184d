//! The rows of an epoch, staged: what the checkpoint carries.

use std::fmt;

use flow_macros::TransactionHandle;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    error::SqlError,
    value::{Rows, read_bytes},
};

/// The version of the encoding.
const VERSION: u8 = 1;

/// The rows that one subtask wrote in one epoch: the handle of a SQL sink in ledger mode.
///
/// It carries the rows themselves, so that they can be applied from another process, after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, TransactionHandle)]
pub struct Staged {
    version: u8,
    /// The last checkpoint before this one at which this subtask had rows: where its ledger row must stand.
    pub(super) previous: u64,
    /// Empty for parameters of a statement and for records of a closure.
    pub(super) columns: Vec<String>,
    /// Values per row.
    pub(super) width: usize,
    pub(super) rows: u64,
    data: Blob,
}

impl Staged {
    /// How many rows it carries.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data.0
    }

    pub(super) fn append(&mut self, data: &[u8], rows: usize) {
        self.version = VERSION;
        self.data.0.extend_from_slice(data);
        self.rows += rows as u64;
    }

    /// Takes the rows out, and leaves the memory that the next epoch will probably need.
    pub(super) fn take(&mut self) -> Staged {
        let empty = Staged { data: Blob(Vec::with_capacity(self.data.0.len())), ..Staged::default() };
        std::mem::replace(self, empty)
    }

    pub(super) fn clear(&mut self) {
        self.data.0.clear();
        self.rows = 0;
    }

    fn count(&self) -> Result<usize, SqlError> {
        match usize::try_from(self.rows) {
            Ok(rows) if self.version == VERSION => Ok(rows),
            _ => Err(SqlError::Damaged),
        }
    }

    /// The rows, at most so many at once, each time with the index of the first of them.
    pub(super) fn chunks(
        &self,
        most: usize,
    ) -> Result<impl Iterator<Item = Result<(usize, Rows<'_>), SqlError>>, SqlError> {
        let (mut data, rows) = (self.data(), self.count()?);
        // Decoded, a row is several times as large as it is staged.
        let starts = (0..rows).step_by(most.max(1));
        Ok(starts.map(move |start| {
            let len = most.min(rows - start);
            let chunk = Rows::decode(&mut data, len, self.width)?;
            let last = start + len == rows;
            if last && !data.is_empty() { Err(SqlError::Damaged) } else { Ok((start, chunk)) }
        }))
    }

    /// The records of a closure, each encoded on its own.
    pub(super) fn records(&self) -> Result<Vec<&[u8]>, SqlError> {
        let (mut data, rows) = (self.data(), self.count()?);
        let mut records = Vec::with_capacity(rows.min(data.len()));
        for _ in 0..rows {
            records.push(read_bytes(&mut data)?);
        }
        if data.is_empty() { Ok(records) } else { Err(SqlError::Damaged) }
    }
}

/// Bytes that serde writes as bytes and not as a list of numbers.
#[derive(Clone, Default, PartialEq, Eq)]
struct Blob(Vec<u8>);

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Blob;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Blob, E> {
                Ok(Blob(bytes.to_owned()))
            }

            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Blob, E> {
                Ok(Blob(bytes))
            }

            // Formats without bytes, such as JSON, have a list of numbers.
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Blob, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = list.next_element()? {
                    bytes.push(byte);
                }
                Ok(Blob(bytes))
            }
        }

        deserializer.deserialize_byte_buf(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{decode_handle, encode_handle};

    #[test]
    fn a_handle_survives_the_checkpoint() {
        let mut staged = Staged { previous: 7, columns: vec!["a".into()], width: 1, ..Staged::default() };
        staged.append(&[0, 1, 255], 3);
        let encoded = encode_handle(&staged).unwrap();
        assert_eq!(decode_handle::<Staged>(&encoded).unwrap(), staged);
    }

    #[test]
    fn another_version_is_refused() {
        let mut staged = Staged::default();
        staged.append(&[0], 1);
        staged.width = 1;
        assert!(staged.chunks(1).is_ok());
        staged.version = 2;
        assert!(staged.chunks(1).is_err());
    }

    #[test]
    fn rows_come_in_chunks() {
        let mut staged = Staged { width: 2, ..Staged::default() };
        staged.append(&[0, 1, 1, 0, 2, 2], 3);
        let chunks: Vec<_> = staged.chunks(2).unwrap().map(|chunk| chunk.unwrap()).collect();
        assert_eq!(
            chunks.iter().map(|(start, rows)| (*start, rows.len())).collect::<Vec<_>>(),
            [(0, 2), (2, 1)]
        );
        staged.append(&[0, 0], 0);
        assert!(staged.chunks(5).unwrap().any(|chunk| chunk.is_err()));
    }
}
