//! Lines of text.

use std::path::Path;

use super::{FileSource, FileSplit, Format, lines::LineInput};
use crate::connectors::{
    file::FileError,
    text::{Origin, TextBatch},
};

/// Files of text: items are `&str`, one per line, without the line ending.
///
/// `pattern` is a file, a directory (all regular files in it whose names start neither with `.` nor with `_`), or a
/// glob. Uncompressed files larger than 64 MiB are read in parts by several subtasks.
///
/// ```
/// use flow_runtime::connectors::file;
/// let lines = file::text("logs/*.txt.gz");
/// ```
pub fn text(pattern: impl AsRef<Path>) -> FileSource<Text> {
    FileSource::new(pattern, Text)
}

/// The format of [`text`].
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Format for Text {
    type Batch = TextBatch;
    type Decoder = LineInput;

    const SPLITTABLE: bool = true;

    fn batch(&self) -> TextBatch {
        TextBatch::default()
    }

    fn open(&self, split: &mut FileSplit) -> Result<LineInput, FileError> {
        LineInput::open(split)
    }

    fn read(
        &self,
        input: &mut LineInput,
        split: &mut FileSplit,
        batch: &mut TextBatch,
    ) -> Result<(), FileError> {
        let block = input.block()?;
        let bytes = block.len();
        batch.fill(split.origin(), block).map_err(|error| FileError::NotUtf8(error.to_string()))?;
        input.consume(bytes);
        split.advance(bytes, batch.len(), input.done());
        Ok(())
    }
}

impl FileSplit {
    /// Where a batch that is read now comes from.
    pub(super) fn origin(&self) -> Origin {
        Origin { name: self.path.as_str().into(), offset: self.offset, line: self.line }
    }

    pub(super) fn advance(&mut self, bytes: usize, lines: usize, done: bool) {
        self.offset += bytes as u64;
        self.line = self.line.map(|line| line + lines as u64);
        self.done = done;
    }
}
