//! A buffer of whole lines, shared by the sources of text.

use std::{fmt, iter::FusedIterator, slice, sync::Arc};

use crate::source::Batch;

/// How many bytes a batch of text holds, give or take a line.
pub(crate) const BATCH_BYTES: usize = 256 * 1024;

/// The longest line that is read; a longer one is taken for a file that is no text.
pub(crate) const MAX_LINE: usize = 1 << 30;

/// Where the first byte of a block of lines came from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// What is read, for messages.
    pub(crate) name: Arc<str>,
    /// The offset of the first byte.
    pub(crate) offset: u64,
    /// The number of the first line, from 1, where it is known.
    pub(crate) line: Option<u64>,
}

impl Origin {
    /// The place `bytes` and `lines` further on.
    pub(crate) fn place(&self, lines: u64, bytes: u64) -> String {
        let (name, offset) = (&self.name, self.offset + bytes);
        match self.line {
            Some(first) => format!("line {} of `{name}`", first + lines),
            None => format!("the line at byte {offset} of `{name}`"),
        }
    }
}

/// Bytes that are no UTF-8.
#[derive(Debug, thiserror::Error)]
#[error("{place} is not valid UTF-8 (at byte {offset}); convert it, for example with `iconv -t utf-8`")]
pub(crate) struct NotUtf8 {
    place: String,
    offset: u64,
}

/// Lines of text in one buffer, valid UTF-8, each without its line ending.
#[derive(Default)]
pub struct TextBatch {
    text: String,
    /// Where each line ends, its line ending included. Found while the buffer is filled, so that the worker does not
    /// look at the bytes twice.
    ends: Vec<u32>,
    /// How many lines have been iterated.
    next: usize,
    origin: Option<Origin>,
}

impl TextBatch {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.next = 0;
        self.origin = None;
    }

    /// How many lines it holds.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Replaces its content by `block`, which ends where a line ends.
    pub(crate) fn fill(&mut self, origin: Origin, block: &[u8]) -> Result<(), NotUtf8> {
        self.clear();
        let text = match simdutf8::basic::from_utf8(block) {
            Ok(text) => text,
            Err(_) => return Err(not_utf8(&origin, block)),
        };
        self.text.push_str(text);
        // No block exceeds `MAX_LINE` by more than a buffer, so that a `u32` holds every place in it.
        self.ends.extend(memchr::memchr_iter(b'\n', block).map(|newline| (newline + 1) as u32));
        if block.last().is_some_and(|&last| last != b'\n') {
            self.ends.push(block.len() as u32);
        }
        self.origin = Some(origin);
        Ok(())
    }
}

fn not_utf8(origin: &Origin, block: &[u8]) -> NotUtf8 {
    let valid = std::str::from_utf8(block).err().map_or(block.len(), |e| e.valid_up_to());
    let lines = memchr::memchr_iter(b'\n', &block[..valid]).count() as u64;
    let line_start = memchr::memrchr(b'\n', &block[..valid]).map_or(0, |newline| newline + 1);
    NotUtf8 { place: origin.place(lines, line_start as u64), offset: origin.offset + valid as u64 }
}

impl fmt::Debug for TextBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextBatch").field("lines", &self.ends.len()).field("bytes", &self.text.len()).finish()
    }
}

impl Batch for TextBatch {
    type Item<'a> = &'a str;

    #[inline]
    fn records(&mut self) -> impl Iterator<Item = &str> {
        let start = if self.next == 0 { 0 } else { self.ends[self.next - 1] as usize };
        Lines { text: &self.text, start, ends: self.ends[self.next..].iter(), next: &mut self.next }
    }

    fn describe(&self, index: u64) -> Option<String> {
        let index = usize::try_from(index).ok().filter(|&index| index < self.ends.len())?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(self.origin.as_ref()?.place(index as u64, u64::from(start)))
    }
}

/// The lines of a [`TextBatch`].
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    start: usize,
    ends: slice::Iter<'a, u32>,
    next: &'a mut usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        let end = *self.ends.next()? as usize;
        *self.next += 1;
        let line = &self.text[self.start..end];
        self.start = end;
        Some(match line.strip_suffix('\n') {
            Some(line) => line.strip_suffix('\r').unwrap_or(line),
            None => line,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ends.size_hint()
    }
}

impl FusedIterator for Lines<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(line: Option<u64>) -> Origin {
        Origin { name: "a.txt".into(), offset: 100, line }
    }

    fn filled(text: &str) -> TextBatch {
        let mut batch = TextBatch::default();
        batch.fill(origin(Some(7)), text.as_bytes()).unwrap();
        batch
    }

    #[test]
    fn splits_like_str_lines() {
        for text in ["", "\n", "a", "a\n", "a\r\nb\r\n", "a\r", "\n\nx", "é\nü\r\n\r\nß", "a\n\r\n"] {
            let mut batch = filled(text);
            assert_eq!(batch.records().collect::<Vec<_>>(), text.lines().collect::<Vec<_>>(), "{text:?}");
            assert_eq!(batch.records().next(), None);
        }
    }

    #[test]
    fn continues_where_the_iteration_stopped() {
        let mut batch = filled("a\nb\nc\n");
        assert_eq!(batch.records().next(), Some("a"));
        assert_eq!(batch.records().next(), Some("b"));
        assert_eq!(batch.records().collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn describes_by_line_or_by_byte() {
        assert_eq!(filled("a\nb\n").describe(1).unwrap(), "line 8 of `a.txt`");
        let mut batch = TextBatch::default();
        batch.fill(origin(None), b"a\nb\n").unwrap();
        assert_eq!(batch.describe(1).unwrap(), "the line at byte 102 of `a.txt`");
        assert_eq!(batch.describe(2), None);
    }

    #[test]
    fn invalid_utf8_is_placed() {
        let error = TextBatch::default().fill(origin(Some(1)), b"ok\nb\xff\n").unwrap_err();
        assert!(
            error.to_string().starts_with("line 2 of `a.txt` is not valid UTF-8 (at byte 104)"),
            "{error}"
        );
    }
}
