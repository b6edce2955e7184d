//! A file, or a part of one.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::source::Split;

/// How much of an uncompressed file one subtask reads at most, so that others can help.
const PART_BYTES: u64 = 64 * 1024 * 1024;

/// A file or a range of its bytes, and how far it has been read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSplit {
    pub(super) path: String,
    /// Lines that start at `start` or later and before `end` belong to this split. Of a compressed file the end is
    /// not known.
    pub(super) start: u64,
    pub(super) end: Option<u64>,
    /// Where the next record starts; counts what is left after decompression.
    pub(super) offset: u64,
    /// The number of the line there, from 1; not known in the later parts of a file.
    pub(super) line: Option<u64>,
    /// Read to its end; the file is not needed any more.
    pub(super) done: bool,
}

impl FileSplit {
    fn new(path: &str, start: u64, end: Option<u64>) -> Self {
        let line = (start == 0).then_some(1);
        FileSplit { path: path.to_owned(), start, end, offset: start, line, done: end == Some(start) }
    }

    /// All of a file.
    pub(super) fn whole(path: &str, len: u64) -> Self {
        FileSplit::new(path, 0, (!super::input::is_compressed(path)).then_some(len))
    }

    /// A file in parts of about equal size, none larger than 64 MiB.
    pub(super) fn parts(path: &str, len: u64) -> Vec<Self> {
        if super::input::is_compressed(path) || len <= PART_BYTES {
            return vec![FileSplit::whole(path, len)];
        }
        let parts = len.div_ceil(PART_BYTES);
        let edge = |i| (u128::from(len) * u128::from(i) / u128::from(parts)) as u64;
        (0..parts).map(|i| FileSplit::new(path, edge(i), Some(edge(i + 1)))).collect()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where the next record starts, in bytes after decompression.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Split for FileSplit {
    fn id(&self) -> String {
        let mut id = String::new();
        self.write_id(&mut id);
        id
    }

    fn write_id(&self, to: &mut String) {
        to.push_str(&self.path);
        if self.start > 0 {
            // After a restore the parts come in the order of these.
            let _ = write!(to, "@{:016}", self.start);
        }
    }

    fn position(&self) -> String {
        match (self.done, self.line) {
            (true, _) => "its end".to_owned(),
            (false, Some(line)) => format!("line {line} (byte {})", self.offset),
            (false, None) => format!("byte {}", self.offset),
        }
    }

    fn is_finished(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_are_cut_evenly() {
        assert_eq!(FileSplit::parts("a", PART_BYTES).len(), 1);
        let parts = FileSplit::parts("a", 2 * PART_BYTES + 2);
        assert_eq!(parts.len(), 3);
        assert_eq!((parts[0].start, parts[2].end), (0, Some(2 * PART_BYTES + 2)));
        assert!(parts.windows(2).all(|pair| pair[0].end == Some(pair[1].start)));
        assert!(parts.iter().all(|part| part.end.unwrap() - part.start <= PART_BYTES));
        assert_eq!((parts[0].id(), parts[0].line), ("a".to_owned(), Some(1)));
        assert_eq!((parts[1].id(), parts[1].line), (format!("a@{:016}", parts[1].start), None));
    }

    #[test]
    fn compressed_files_are_not_cut() {
        assert_eq!(FileSplit::parts("a.gz", 10 * PART_BYTES).len(), 1);
        assert_eq!(FileSplit::whole("a.gz", 0).end, None);
    }

    #[test]
    fn an_empty_file_is_done() {
        assert!(FileSplit::whole("a", 0).done);
    }
}
