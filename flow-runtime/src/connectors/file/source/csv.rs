//! Comma-separated values.

use std::{fmt, io::Read, marker::PhantomData, path::Path, sync::Arc};

use ::csv::{ByteRecord, Position, ReaderBuilder};
use serde::de::DeserializeOwned;

use super::{
    FileSource, FileSplit, Format, Skipped,
    input::{self, Input},
    skipped::{Gaps, Invalid},
};
use crate::{
    connectors::{file::FileError, text::BATCH_BYTES},
    error::BoxError,
    source::Batch,
};

/// How many rows a batch holds at most, so that short rows do not make it large.
const BATCH_ROWS: usize = 4096;

/// CSV files; items are `T`, a struct whose fields are named in the first row, or a tuple.
///
/// `pattern` is as for [`text`](super::text). A quoted field may hold line breaks; therefore a file is read by one
/// subtask, however large. Rows with more or fewer fields than the header are invalid.
///
/// ```
/// use flow_runtime::connectors::file;
/// #[derive(serde::Deserialize)]
/// struct Order { id: u64, item: String, price: f64 }
/// let orders = file::csv::<Order>("orders/*.csv").delimiter(b';');
/// let pairs = file::csv::<(String, u64)>("pairs.csv").header(false).skip_invalid();
/// ```
pub fn csv<T: DeserializeOwned + Send + 'static>(pattern: impl AsRef<Path>) -> FileSource<Csv<T>> {
    FileSource::new(
        pattern,
        Csv { delimiter: b',', header: true, invalid: Invalid::default(), item: PhantomData },
    )
}

/// The format of [`csv()`].
pub struct Csv<T> {
    delimiter: u8,
    header: bool,
    invalid: Invalid,
    item: PhantomData<fn() -> T>,
}

impl<T, M> FileSource<Csv<T>, M> {
    /// What separates fields; `,` unless set.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.format.delimiter = delimiter;
        self
    }

    /// Whether the first row of each file names the fields; it does unless this says `false`.
    #[must_use]
    pub fn header(mut self, header: bool) -> Self {
        self.format.header = header;
        self
    }

    /// Skips rows that do not parse, counts them and says so in the log, instead of failing the job.
    #[must_use]
    pub fn skip_invalid(mut self) -> Self {
        self.format.invalid.skip = true;
        self
    }

    /// How many rows [`skip_invalid`](Self::skip_invalid) has skipped. Stays 0 without it.
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        self.format.invalid.skipped.clone()
    }
}

impl<T> Clone for Csv<T> {
    fn clone(&self) -> Self {
        Csv { invalid: self.invalid.clone(), item: PhantomData, ..*self }
    }
}

impl<T> fmt::Debug for Csv<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Csv")
    }
}

impl<T> Csv<T> {
    fn reader(&self, input: Input) -> ::csv::Reader<Input> {
        ReaderBuilder::new()
            .delimiter(self.delimiter)
            // The header is read here, since a file that is read on starts somewhere else.
            .has_headers(false)
            // The number of fields is looked at where the row is parsed, since it may be skipped.
            .flexible(true)
            .buffer_capacity(BATCH_BYTES)
            .from_reader(input)
    }

    /// The first row, and whether lines end in `\r\n`.
    fn first_row(&self, split: &FileSplit) -> Result<(ByteRecord, bool), FileError> {
        let mut row = ByteRecord::new();
        let mut reader = self.reader(input::open(split, 0)?);
        reader.read_byte_record(&mut row).map_err(|error| unreadable(split, error))?;
        row.trim();
        let mut last = [0];
        if let Some(before) = reader.position().byte().checked_sub(1) {
            let read = input::open(split, before)?.read(&mut last);
            read.map_err(|error| FileError::read(&split.path, error))?;
        }
        Ok((row, last == *b"\r"))
    }
}

/// An open file, its header, and where reading began.
pub struct Rows {
    reader: ::csv::Reader<Input>,
    header: Option<Arc<ByteRecord>>,
    base: u64,
    base_line: u64,
    /// The parser ends a row at `\r` and leaves `\n` to the next one, whose line number is then one too low.
    crlf: bool,
}

impl Rows {
    /// The number of the line of the row that starts at `position`.
    fn line(&self, position: &Position) -> u64 {
        let behind = self.crlf && self.base + position.byte() > 0;
        self.base_line + position.line() - 1 + u64::from(behind)
    }
}

fn unreadable(split: &FileSplit, error: ::csv::Error) -> FileError {
    match error.into_kind() {
        ::csv::ErrorKind::Io(cause) => FileError::read(&split.path, cause),
        other => FileError::read(&split.path, std::io::Error::other(format!("{other:?}"))),
    }
}

impl<T: DeserializeOwned + Send + 'static> Format for Csv<T> {
    type Batch = CsvBatch<T>;
    type Decoder = Rows;

    const SPLITTABLE: bool = false;

    fn batch(&self) -> CsvBatch<T> {
        CsvBatch {
            rows: Vec::new(),
            filled: 0,
            next: 0,
            path: String::new(),
            header: None,
            gaps: Gaps::default(),
            invalid: self.invalid.clone(),
            error: None,
            item: PhantomData,
        }
    }

    fn open(&self, split: &mut FileSplit) -> Result<Rows, FileError> {
        let (first, crlf) = self.first_row(split)?;
        let mut rows = Rows {
            reader: self.reader(input::open(split, split.offset)?),
            header: self.header.then(|| Arc::new(first)),
            base: split.offset,
            base_line: split.line.unwrap_or(1),
            crlf,
        };
        if self.header && split.offset == 0 {
            let header = &mut ByteRecord::new();
            rows.reader.read_byte_record(header).map_err(|error| unreadable(split, error))?;
        }
        Ok(rows)
    }

    fn read(&self, rows: &mut Rows, split: &mut FileSplit, batch: &mut CsvBatch<T>) -> Result<(), FileError> {
        batch.clear(split, &rows.header);
        let start = rows.reader.position().byte();
        while batch.filled < BATCH_ROWS && rows.reader.position().byte() - start < BATCH_BYTES as u64 {
            // What was appended since the file was found is left alone.
            let ended = split.end.is_some_and(|end| rows.base + rows.reader.position().byte() >= end);
            let before = rows.reader.position().clone();
            let row = batch.free_row();
            if ended || !rows.reader.read_byte_record(row).map_err(|error| unreadable(split, error))? {
                split.done = true;
                break;
            }
            batch.rows[batch.filled].1 = rows.line(&before);
            batch.filled += 1;
        }
        let position = rows.reader.position();
        split.offset = rows.base + position.byte();
        split.line = Some(rows.base_line + position.line() - 1);
        Ok(())
    }
}

/// Rows of CSV, converted to `T` one by one as they are iterated.
pub struct CsvBatch<T> {
    /// Rows with their line numbers, of which the first `filled` count; the others keep their memory.
    rows: Vec<(ByteRecord, u64)>,
    filled: usize,
    next: usize,
    path: String,
    header: Option<Arc<ByteRecord>>,
    gaps: Gaps,
    invalid: Invalid,
    error: Option<BoxError>,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> CsvBatch<T> {
    fn clear(&mut self, split: &FileSplit, header: &Option<Arc<ByteRecord>>) {
        (self.filled, self.next, self.error) = (0, 0, None);
        self.gaps.clear();
        self.header.clone_from(header);
        self.path.clone_from(&split.path);
    }

    fn free_row(&mut self) -> &mut ByteRecord {
        if self.filled == self.rows.len() {
            self.rows.push(Default::default());
        }
        &mut self.rows[self.filled].0
    }

    /// The next record; `None` at the end, and after an error.
    fn record(&mut self) -> Option<T> {
        while self.next < self.filled {
            let (row, _) = &self.rows[self.next];
            self.next += 1;
            let cause = match self.parse(row) {
                Ok(record) => return Some(record),
                Err(cause) => cause,
            };
            let place = self.place(self.next - 1);
            if !self.invalid.skip {
                self.error = Some(FileError::Invalid { place, cause }.into());
                return None;
            }
            self.invalid.skipped.add(&place, &cause);
            self.gaps.push(self.next as u64 - 1);
        }
        None
    }

    fn parse(&self, row: &ByteRecord) -> Result<T, String> {
        let header = self.header.as_deref();
        if let Some(header) = header.filter(|header| header.len() != row.len()) {
            return Err(format!("{} fields, where the header has {}", row.len(), header.len()));
        }
        row.deserialize(header).map_err(|error| match error.kind() {
            ::csv::ErrorKind::Deserialize { err, .. } => {
                match err.field().and_then(|field| header?.get(field as usize)) {
                    Some(name) => format!("field `{}`: {}", name.escape_ascii(), err.kind()),
                    None => err.to_string(),
                }
            }
            _ => error.to_string(),
        })
    }

    fn place(&self, row: usize) -> String {
        format!("line {} of `{}`", self.rows[row].1, self.path)
    }
}

impl<T> fmt::Debug for CsvBatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvBatch").field("rows", &self.filled).finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned + Send + 'static> Batch for CsvBatch<T> {
    type Item<'a> = T;

    fn records(&mut self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| self.record())
    }

    fn error(&mut self) -> Option<BoxError> {
        self.error.take()
    }

    fn describe(&self, index: u64) -> Option<String> {
        let row = usize::try_from(self.gaps.row(index)).ok()?;
        (row < self.filled).then(|| self.place(row))
    }
}
