//! The records of an epoch, staged: what the checkpoint carries.

use std::fmt;

use bytes::Bytes;
use flow_macros::TransactionHandle;

use super::encoding::{Encoded, split_record};
use crate::error::BoxError;

/// Speed counts more than size: what is staged is written once and read once.
const LEVEL: i32 = 1;

/// The records that one subtask wrote in one epoch: the handle of a Kafka sink that is exactly once.
///
/// It carries the records themselves, compressed, so that they can be produced from another process, after a crash.
#[derive(Clone, PartialEq, Eq, TransactionHandle)]
pub struct Staged {
    /// The attempt that staged it.
    pub(super) attempt: u64,
    /// The last checkpoint before this one at which this subtask had records: where its marker must stand. So there was
    /// a marker before there was a handle.
    pub(super) previous: u64,
    records: u64,
    /// Blocks, each with its length as it is here, its length decompressed, and its bytes.
    data: Bytes,
}

impl Staged {
    /// How many records it carries.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Hands each record, with its index, to `each`.
    pub(super) fn each<E: From<Damaged>>(
        &self,
        mut each: impl FnMut(u64, &mut Encoded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut decompressor = zstd::bulk::Decompressor::new().map_err(|_| Damaged)?;
        let (mut data, mut raw, mut index) = (&*self.data, Vec::new(), 0);
        while !data.is_empty() {
            let (block, length, rest) = split_block(data).ok_or(Damaged)?;
            raw.resize(length, 0);
            let written = decompressor.decompress_to_buffer(block, &mut raw).map_err(|_| Damaged)?;
            let mut records = raw.get(..written).filter(|_| written == length).ok_or(Damaged)?;
            while !records.is_empty() {
                let (mut record, next) = split_record(records).ok_or(Damaged)?;
                each(index, &mut record)?;
                index += 1;
                records = next;
            }
            data = rest;
        }
        if index == self.records { Ok(()) } else { Err(Damaged.into()) }
    }
}

fn split_block(data: &[u8]) -> Option<(&[u8], usize, &[u8])> {
    let (packed, rest) = data.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (block, rest) = rest.split_at_checked(u32::from_le_bytes(*packed) as usize)?;
    Some((block, u32::from_le_bytes(*length) as usize, rest))
}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged")
            .field("attempt", &self.attempt)
            .field("previous", &self.previous)
            .field("records", &self.records)
            .field("bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// The checksums of the checkpoint are right, and still it cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the records that the checkpoint holds cannot be read: were they written by a later version of flow?"
)]
pub(super) struct Damaged;

/// The epoch that is being staged.
pub(super) struct Staging {
    compressor: zstd::bulk::Compressor<'static>,
    data: Vec<u8>,
    records: u64,
    attempt: u64,
    /// The last checkpoint at which there were records.
    previous: u64,
}

impl Staging {
    pub(super) fn new(attempt: u64, previous: u64) -> Result<Self, BoxError> {
        let compressor = zstd::bulk::Compressor::new(LEVEL)?;
        Ok(Staging { compressor, data: Vec::new(), records: 0, attempt, previous })
    }

    /// Adds encoded records.
    pub(super) fn add(&mut self, encoded: &[u8], records: usize) -> Result<(), BoxError> {
        let start = self.data.len();
        self.data.resize(start + 8 + zstd::zstd_safe::compress_bound(encoded.len()), 0);
        let packed = self.compressor.compress_to_buffer(encoded, &mut self.data[start + 8..])?;
        self.data.truncate(start + 8 + packed);
        self.data[start..start + 4].copy_from_slice(&u32::try_from(packed)?.to_le_bytes());
        self.data[start + 4..start + 8].copy_from_slice(&u32::try_from(encoded.len())?.to_le_bytes());
        self.records += records as u64;
        Ok(())
    }

    /// Ends the epoch; `None` if there was nothing in it.
    pub(super) fn take(&mut self, checkpoint: u64) -> Option<Staged> {
        if self.records == 0 {
            return None;
        }
        let room = self.data.len();
        let data = std::mem::replace(&mut self.data, Vec::with_capacity(room));
        Some(Staged {
            attempt: self.attempt,
            previous: std::mem::replace(&mut self.previous, checkpoint),
            records: std::mem::take(&mut self.records),
            data: data.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{KafkaBuffer, Values},
        *,
    };
    use crate::sink::{SinkBuffer, Write, decode_handle, encode_handle};

    fn staged() -> Staged {
        let mut staging = Staging::new(9, 3).unwrap();
        let mut buffer = KafkaBuffer::new(std::sync::Arc::new(Values));
        for n in 0..1000u32 {
            buffer.write((n % 7, format!("value {n}"))).unwrap();
            if n % 300 == 0 {
                staging.add(&buffer.bytes, buffer.len()).unwrap();
                buffer.clear();
            }
        }
        staging.add(&buffer.bytes, buffer.len()).unwrap();
        let staged = staging.take(5).unwrap();
        assert_eq!(staging.take(6), None);
        staging.add(&buffer.bytes, buffer.len()).unwrap();
        assert_eq!(staging.take(7).map(|next| next.previous), Some(5));
        staged
    }

    #[test]
    fn a_handle_survives_the_checkpoint() {
        let staged = staged();
        let back: Staged = decode_handle(&encode_handle(&staged).unwrap()).unwrap();
        assert_eq!(back, staged);
        assert_eq!((back.attempt, back.previous, back.records()), (9, 3, 1000));
        assert!(back.data.len() < 8000, "{back:?}");
        let mut next = 0;
        back.each::<Damaged>(|index, record| {
            assert_eq!(index, next);
            assert_eq!(record.key, Some((next % 7).to_string().as_bytes()));
            assert_eq!(record.value, Some(format!("value {next}").as_bytes()));
            next += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(next, 1000);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let staged = staged();
        let read = |staged: &Staged| staged.each::<Damaged>(|_, _| Ok(()));
        assert!(read(&staged).is_ok());
        assert!(read(&Staged { records: 999, ..staged.clone() }).is_err());
        let half = staged.data.slice(..staged.data.len() / 2);
        assert!(read(&Staged { data: half, ..staged }).is_err());
    }
}
