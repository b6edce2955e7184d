//! The sink of files: hidden while they are written, finished by a rename once their checkpoint is complete.

mod builder;
mod columns;
mod commit;
mod encoder;
mod names;
mod output;
mod recover;
mod row;
mod writer;

#[cfg(test)]
mod tests;

pub use builder::FileSink;
pub use columns::{Columns, to_csv, to_tsv};
pub use commit::FileCommitter;
pub use encoder::{Encoder, FileBuffer, JsonLines, Lines, to_json_lines, to_lines};
pub use output::{Finished, PendingFiles};
pub use writer::FileWriter;
