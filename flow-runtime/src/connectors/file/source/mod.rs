//! The sources of files.

mod csv;
mod format;
mod input;
mod json;
mod lines;
mod reader;
mod skipped;
mod split;
mod text;

#[cfg(test)]
mod tests;

pub use csv::{Csv, CsvBatch, csv};
pub use format::{FileSource, Format, Once, Watching};
pub use json::{Json, JsonBatch, json_lines};
pub use reader::FileReader;
pub use skipped::Skipped;
pub use split::FileSplit;
pub use text::{Text, text};
