//! Rows of columns: CSV and TSV.

use std::path::PathBuf;

use serde::Serialize;

use super::{Encoder, FileBuffer, FileSink, row};
use crate::{error::BoxError, sink::Write};

/// Writes tuples and structs as rows separated by tabs, into `.tsv` files in `dir`: `("a", 1)` becomes `a<TAB>1`.
///
/// Fields that hold a tab, a line break or a quote are quoted as in CSV. There is no header unless
/// [`header`](FileSink::header) asks for one.
///
/// ```
/// use flow_runtime::connectors::file;
/// let sink = file::to_tsv("counts");
/// ```
pub fn to_tsv(dir: impl Into<PathBuf>) -> FileSink<Columns> {
    FileSink::new(dir, Columns { delimiter: b'\t', header: false })
}

/// Writes structs and tuples as CSV, into `.csv` files in `dir`. Each file begins with the names of the struct's
/// fields; a tuple has none.
///
/// ```
/// use flow_runtime::connectors::file;
/// let sink = file::to_csv("orders").delimiter(b';').header(false);
/// ```
pub fn to_csv(dir: impl Into<PathBuf>) -> FileSink<Columns> {
    FileSink::new(dir, Columns { delimiter: b',', header: true })
}

/// The form of [`to_csv`] and [`to_tsv`].
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    delimiter: u8,
    header: bool,
}

impl FileSink<Columns> {
    /// What separates the columns.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.encoder.delimiter = delimiter;
        self
    }

    /// Whether each file begins with the names of the columns.
    #[must_use]
    pub fn header(mut self, header: bool) -> Self {
        self.encoder.header = header;
        self
    }
}

impl Encoder for Columns {
    fn extension(&self) -> &'static str {
        if self.delimiter == b'\t' { "tsv" } else { "csv" }
    }
}

impl<T: Serialize> Write<T> for FileBuffer<Columns> {
    #[inline]
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        let start = self.bytes.len();
        let encoded = row::write(&record, self.encoder.delimiter, &mut self.bytes);
        let encoded = match encoded {
            Ok(columns) if self.columns == Some(columns) => Ok(()),
            Ok(columns) => self.check_columns(&record, columns),
            Err(error) => Err(error.into()),
        };
        self.finish(start, encoded)
    }
}

impl FileBuffer<Columns> {
    /// The first record decides how many columns there are, and their names.
    #[cold]
    fn check_columns<T: Serialize>(&mut self, record: &T, columns: usize) -> Result<(), BoxError> {
        if let Some(first) = self.columns {
            return Err(format!("a record has {columns} columns, where the first had {first}").into());
        }
        if self.encoder.header {
            let names = row::names(record, self.encoder.delimiter, &mut self.header)?;
            if names != columns && names > 0 {
                self.header.clear();
                return Err(format!(
                    "a record has {columns} columns but {names} names, because a field holds a tuple; \
                     make it a struct, or leave the names out with `.header(false)`"
                )
                .into());
            }
            if names > 0 {
                self.header.push(b'\n');
            }
        }
        self.columns = Some(columns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Order<'a> {
        id: u64,
        item: &'a str,
        note: Option<String>,
    }

    fn buffer(sink: FileSink<Columns>) -> FileBuffer<Columns> {
        FileBuffer::new(sink.encoder)
    }

    fn text(buffer: &FileBuffer<Columns>) -> (&str, &str) {
        (std::str::from_utf8(&buffer.header).unwrap(), std::str::from_utf8(&buffer.bytes).unwrap())
    }

    #[test]
    fn tuples_as_tsv() {
        let mut buffer = buffer(to_tsv("x"));
        buffer.write(("a", 1u64)).unwrap();
        buffer.write((String::from("b\tc"), 2u64)).unwrap();
        buffer.write((("", 3.5), 'x')).unwrap_err();
        assert_eq!(text(&buffer), ("", "a\t1\n\"b\tc\"\t2\n"));
    }

    #[test]
    fn structs_as_csv() {
        let mut buffer = buffer(to_csv("x"));
        buffer.write(Order { id: 1, item: "a \"b\"", note: None }).unwrap();
        buffer.write(&Order { id: 2, item: "c,d", note: Some("e".into()) }).unwrap();
        assert_eq!(text(&buffer), ("id,item,note\n", "1,\"a \"\"b\"\"\",\n2,\"c,d\",e\n"));
    }

    #[test]
    fn nested_rows_are_flattened() {
        let mut csv = buffer(to_csv("x"));
        csv.write((Order { id: 1, item: "a", note: None }, 7)).unwrap_err();
        let mut tsv = buffer(to_tsv("x"));
        tsv.write((Order { id: 1, item: "a", note: None }, 7)).unwrap();
        assert_eq!(text(&tsv), ("", "1\ta\t\t7\n"));
    }
}
