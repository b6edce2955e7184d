//! JSON, a value per line.

use std::{fmt, marker::PhantomData, path::Path};

use serde::de::DeserializeOwned;

use super::{
    FileSource, FileSplit, Format, Skipped,
    lines::LineInput,
    skipped::{Gaps, Invalid},
};
use crate::{
    connectors::{file::FileError, text::Origin},
    error::BoxError,
    source::Batch,
};

/// Files with a JSON value on each line; items are `T`. Blank lines are ignored.
///
/// `pattern` is as for [`text`](super::text).
///
/// ```
/// use flow_runtime::connectors::file;
/// #[derive(serde::Deserialize)]
/// struct Click { user: u64, page: String }
/// let clicks = file::json_lines::<Click>("clicks/").skip_invalid();
/// ```
pub fn json_lines<T: DeserializeOwned + Send + 'static>(pattern: impl AsRef<Path>) -> FileSource<Json<T>> {
    FileSource::new(pattern, Json { invalid: Invalid::default(), item: PhantomData })
}

/// The format of [`json_lines`].
pub struct Json<T> {
    invalid: Invalid,
    item: PhantomData<fn() -> T>,
}

impl<T, M> FileSource<Json<T>, M> {
    /// Skips lines that do not parse, counts them and says so in the log, instead of failing the job.
    #[must_use]
    pub fn skip_invalid(mut self) -> Self {
        self.format.invalid.skip = true;
        self
    }

    /// How many lines [`skip_invalid`](Self::skip_invalid) has skipped. Stays 0 without it.
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        self.format.invalid.skipped.clone()
    }
}

impl<T> Clone for Json<T> {
    fn clone(&self) -> Self {
        Json { invalid: self.invalid.clone(), item: PhantomData }
    }
}

impl<T> fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Json")
    }
}

impl<T: DeserializeOwned + Send + 'static> Format for Json<T> {
    type Batch = JsonBatch<T>;
    type Decoder = LineInput;

    const SPLITTABLE: bool = true;

    fn batch(&self) -> JsonBatch<T> {
        JsonBatch {
            bytes: Vec::new(),
            at: 0,
            row: 0,
            gaps: Gaps::default(),
            origin: None,
            invalid: self.invalid.clone(),
            error: None,
            item: PhantomData,
        }
    }

    fn open(&self, split: &mut FileSplit) -> Result<LineInput, FileError> {
        LineInput::open(split)
    }

    fn read(
        &self,
        input: &mut LineInput,
        split: &mut FileSplit,
        batch: &mut JsonBatch<T>,
    ) -> Result<(), FileError> {
        let block = input.block()?;
        let (bytes, lines) = (block.len(), memchr::memchr_iter(b'\n', block).count());
        batch.fill(split.origin(), block);
        input.consume(bytes);
        split.advance(bytes, lines, input.done());
        Ok(())
    }
}

/// Lines of JSON, parsed one by one as they are iterated.
pub struct JsonBatch<T> {
    bytes: Vec<u8>,
    at: usize,
    row: u64,
    gaps: Gaps,
    origin: Option<Origin>,
    invalid: Invalid,
    error: Option<BoxError>,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> JsonBatch<T> {
    fn fill(&mut self, origin: Origin, block: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(block);
        (self.at, self.row, self.origin, self.error) = (0, 0, Some(origin), None);
        self.gaps.clear();
    }

    /// The next record; `None` at the end, and after an error.
    fn record(&mut self) -> Option<T> {
        while self.at < self.bytes.len() {
            let start = self.at;
            let rest = &self.bytes[start..];
            let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
            self.at += line.len() + 1;
            self.row += 1;
            // The common case costs no look at the line but the parser's.
            match serde_json::from_slice(line) {
                Ok(record) => return Some(record),
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(cause) => {
                    let cause = cause.to_string();
                    // There is one line only, and it is named.
                    let cause = cause.replace("at line 1 column", "at column");
                    let place = self.place(self.row - 1, start);
                    if !self.invalid.skip {
                        self.error = Some(FileError::Invalid { place, cause }.into());
                        return None;
                    }
                    self.invalid.skipped.add(&place, &cause);
                }
            }
            self.gaps.push(self.row - 1);
        }
        None
    }

    fn place(&self, row: u64, byte: usize) -> String {
        self.origin.as_ref().map_or_else(String::new, |origin| origin.place(row, byte as u64))
    }
}

impl<T> fmt::Debug for JsonBatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonBatch").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned + Send + 'static> Batch for JsonBatch<T> {
    type Item<'a> = T;

    fn records(&mut self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| self.record())
    }

    fn error(&mut self) -> Option<BoxError> {
        self.error.take()
    }

    fn describe(&self, index: u64) -> Option<String> {
        let row = self.gaps.row(index);
        let skip = usize::try_from(row).ok()?;
        let start = match skip {
            0 => 0,
            _ => memchr::memchr_iter(b'\n', &self.bytes).nth(skip - 1)? + 1,
        };
        Some(self.place(row, start))
    }
}
