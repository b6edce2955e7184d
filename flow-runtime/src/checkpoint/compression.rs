//! Compression of state parts.

use std::io;

use bytes::Bytes;

/// How the state of operators is written. What was written either way is read without being told which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    #[default]
    None,
    /// With Zstandard at its fastest usual level: less to write and to keep, for some work on the I/O threads.
    Zstd,
}

/// Level 3, zstd's own default, costs twice the time of level 1 for a few percent.
const LEVEL: i32 = 1;

pub(super) fn compress(payload: &[u8]) -> io::Result<Bytes> {
    zstd::bulk::compress(payload, LEVEL).map(Bytes::from)
}

/// The checksum has been verified, so that what is read here is what was written.
pub(super) fn decompress(payload: &[u8]) -> io::Result<Bytes> {
    zstd::stream::decode_all(payload).map(Bytes::from)
}
