//! Files: lines of text, CSV and JSON, read in parallel and written exactly once.
//!
//! Sources are [`text`], [`csv()`] and [`json_lines`]; each takes a file, a directory or a glob. Sinks are
//! [`to_lines`], [`to_tsv`], [`to_csv`] and [`to_json_lines`]; each takes a directory.

mod discover;
mod error;
mod sink;
mod source;

pub use error::FileError;
pub use sink::{
    Columns, Encoder, FileBuffer, FileCommitter, FileSink, FileWriter, Finished, JsonLines, Lines,
    PendingFiles, to_csv, to_json_lines, to_lines, to_tsv,
};
pub use source::{
    Csv, CsvBatch, FileReader, FileSource, FileSplit, Format, Json, JsonBatch, Once, Skipped, Text, Watching,
    csv, json_lines, text,
};
