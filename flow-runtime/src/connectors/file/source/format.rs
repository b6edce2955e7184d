//! The source of files, whatever their format.

use std::{fmt, marker::PhantomData, path::Path, time::Duration};

use super::{FileReader, FileSplit};
use crate::{
    connectors::file::{FileError, discover},
    error::BoxError,
    source::{Batch, Bounded, Rewindable, Source, SourceContext},
};

/// How the bytes of a file become records. Its calls block; they run on a thread where that is allowed.
pub trait Format: Clone + Send + Sync + 'static {
    /// The buffer of records.
    type Batch: Batch;
    /// An open file.
    type Decoder: Send + 'static;

    /// Whether a record can be found from the middle of a file, so that large files may be read in parts.
    const SPLITTABLE: bool;

    /// An empty batch.
    fn batch(&self) -> Self::Batch;

    /// Opens the file of `split` where it stands.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what it was.
    fn open(&self, split: &mut FileSplit) -> Result<Self::Decoder, FileError>;

    /// Replaces what `batch` holds by the next records, and moves `split` behind them.
    ///
    /// # Errors
    /// When the file cannot be read.
    fn read(
        &self,
        decoder: &mut Self::Decoder,
        split: &mut FileSplit,
        batch: &mut Self::Batch,
    ) -> Result<(), FileError>;
}

/// Reads the files that are there when the job starts, and ends.
#[derive(Clone, Copy, Debug)]
pub enum Once {}

/// Looks for new files again and again, and never ends.
#[derive(Clone, Copy, Debug)]
pub enum Watching {}

/// Files of one format: a source. Made by [`text`](super::text), [`csv`](super::csv) and
/// [`json_lines`](super::json_lines).
///
/// A file is read up to the length it had when it was found; it must not be changed while a job reads it, nor until
/// the job has resumed from the checkpoint that names it. Files ending in `.gz` and `.zst` are decompressed.
pub struct FileSource<F, M = Once> {
    pattern: String,
    pub(super) format: F,
    every: Option<Duration>,
    mode: PhantomData<fn() -> M>,
}

impl<F: Format> FileSource<F> {
    pub(super) fn new(pattern: impl AsRef<Path>, format: F) -> Self {
        // A name that is no UTF-8 is then not found, under a name that can be shown.
        let pattern = pattern.as_ref().to_string_lossy().into_owned();
        FileSource { pattern, format, every: None, mode: PhantomData }
    }

    /// Looks for new files each `every`, so that the source never ends.
    ///
    /// Move a finished file into the directory, or write it under a name that starts with `.` or `_` and then rename
    /// it: a file that is still being written would be read up to the length it has when it is found.
    ///
    /// ```
    /// use std::time::Duration;
    /// use flow_runtime::connectors::file;
    /// let logs = file::text("logs/*.txt").discover_every(Duration::from_secs(10));
    /// ```
    #[must_use]
    pub fn discover_every(self, every: Duration) -> FileSource<F, Watching> {
        FileSource { pattern: self.pattern, format: self.format, every: Some(every), mode: PhantomData }
    }
}

impl<F, M> fmt::Debug for FileSource<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSource").field("pattern", &self.pattern).finish_non_exhaustive()
    }
}

impl<F: Format, M: 'static> Source for FileSource<F, M> {
    type Split = FileSplit;
    type Batch = F::Batch;
    type Reader = FileReader<F>;

    async fn discover(&self, restored: bool) -> Result<Vec<FileSplit>, BoxError> {
        let (pattern, watching) = (self.pattern.clone(), self.every.is_some());
        let found = tokio::task::spawn_blocking(move || match discover::find(&pattern) {
            // After a restore the files may be gone that were read to their end. The others are missed when opened.
            Err(FileError::NothingMatches { .. }) if restored => Ok(Vec::new()),
            Ok(files) if files.is_empty() && discover::is_glob(&pattern) && !watching && !restored => {
                Err(FileError::NothingMatches { pattern })
            }
            found => found,
        });
        let files = found.await??;
        // A watched file is not cut, so that its splits stay the same should it grow after all.
        let cut = F::SPLITTABLE && !watching;
        let splits = |(path, len): &(String, u64)| match cut {
            true => FileSplit::parts(path, *len),
            false => vec![FileSplit::whole(path, *len)],
        };
        Ok(files.iter().flat_map(splits).collect())
    }

    fn discovery_interval(&self) -> Option<Duration> {
        self.every
    }

    async fn open(&self, _cx: SourceContext, splits: Vec<FileSplit>) -> Result<FileReader<F>, BoxError> {
        Ok(FileReader::new(self.format.clone(), splits, self.every.is_some()))
    }
}

#[diagnostic::do_not_recommend]
impl<F: Format, M: 'static> Rewindable for FileSource<F, M> {}

impl<F: Format> Bounded for FileSource<F, Once> {}
