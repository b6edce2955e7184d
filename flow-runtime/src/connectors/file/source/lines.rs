//! Blocks of whole lines of a file.

use std::io::{self, Read};

use super::{
    FileSplit,
    input::{self, Input},
};
use crate::connectors::{
    file::FileError,
    text::{BATCH_BYTES, MAX_LINE},
};

/// Reads a file in blocks of whole lines.
pub struct LineInput {
    path: String,
    input: Input,
    /// Of which the first `filled` bytes are read and not consumed.
    buffer: Vec<u8>,
    filled: usize,
    /// Where the buffer's first byte lies in the file.
    offset: u64,
    /// Where the split ends.
    end: u64,
    /// The length that the file must have.
    len: u64,
    eof: bool,
}

impl LineInput {
    /// Opens the file where `split` stands, and moves a split that was not begun to its first line.
    pub(super) fn open(split: &mut FileSplit) -> Result<Self, FileError> {
        let fresh = split.offset == split.start;
        // The line that starts before a part belongs to the part before. To know whether one starts right at the
        // beginning, look at the byte before.
        let behind = u64::from(fresh && split.start > 0);
        let offset = split.offset - behind;
        let mut lines = LineInput {
            path: split.path.clone(),
            input: input::open(split, offset)?,
            buffer: vec![0; BATCH_BYTES],
            filled: 0,
            offset,
            end: split.end.unwrap_or(u64::MAX),
            len: split.end.unwrap_or(0),
            eof: false,
        };
        if behind > 0 {
            lines.skip_line()?;
        } else if fresh {
            lines.skip_byte_order_mark()?;
        }
        split.offset = lines.offset;
        Ok(lines)
    }

    fn skip_line(&mut self) -> Result<(), FileError> {
        loop {
            self.fill()?;
            let newline = memchr::memchr(b'\n', &self.buffer[..self.filled]);
            self.consume(newline.map_or(self.filled, |newline| newline + 1));
            if newline.is_some() || self.eof {
                return Ok(());
            }
        }
    }

    fn skip_byte_order_mark(&mut self) -> Result<(), FileError> {
        self.fill()?;
        if self.buffer[..self.filled].starts_with(b"\xef\xbb\xbf") {
            self.consume(3);
        }
        Ok(())
    }

    /// The next whole lines, at least one; empty at the end of the split.
    pub(super) fn block(&mut self) -> Result<&[u8], FileError> {
        loop {
            if let Some(cut) = self.cut() {
                return Ok(&self.buffer[..cut]);
            }
            if self.filled == self.buffer.len() {
                if self.filled >= MAX_LINE {
                    let (path, offset) = (self.path.clone(), self.offset);
                    return Err(FileError::LineTooLong { path, offset, limit: MAX_LINE });
                }
                self.buffer.resize(2 * self.filled, 0);
            }
            self.fill()?;
        }
    }

    /// Up to where the buffer holds whole lines of this split; `None` when more must be read to know.
    fn cut(&self) -> Option<usize> {
        let held = &self.buffer[..self.filled];
        let left = self.end.saturating_sub(self.offset);
        if left == 0 {
            return Some(0);
        }
        if left > held.len() as u64 {
            if self.eof {
                return Some(held.len());
            }
            return if held.len() < BATCH_BYTES { None } else { Some(memchr::memrchr(b'\n', held)? + 1) };
        }
        // The split ends in this buffer: the line that holds its last byte is its last.
        let last = left as usize - 1;
        match memchr::memchr(b'\n', &held[last..]) {
            Some(newline) => Some(last + newline + 1),
            None if self.eof => Some(held.len()),
            None => Some(memchr::memrchr(b'\n', &held[..last])? + 1),
        }
    }

    /// Forgets the first `bytes` of the buffer.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        self.offset += bytes as u64;
    }

    /// Whether the split is read to its end.
    pub(super) fn done(&self) -> bool {
        self.offset >= self.end || (self.eof && self.filled == 0)
    }

    /// Reads until the buffer is full or the file ends.
    fn fill(&mut self) -> Result<(), FileError> {
        while self.filled < self.buffer.len() && !self.eof {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.eof = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::read(&self.path, error)),
            }
        }
        let now = self.offset + self.filled as u64;
        if self.eof && now < self.len {
            return Err(FileError::Shrank { path: self.path.clone(), before: self.len, now });
        }
        Ok(())
    }
}
