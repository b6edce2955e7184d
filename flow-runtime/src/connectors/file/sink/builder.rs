//! The sink as a pipeline describes it.

use std::{path::PathBuf, sync::Arc};

use super::{
    Encoder, FileBuffer, FileCommitter, FileWriter, PendingFiles, commit,
    output::{Output, Place},
    recover,
};
use crate::{
    error::BoxError,
    sink::{ExactlyOnce, Recovered, Sink, SinkContext, Standing},
};

/// Files in a directory, written exactly once: a sink. Made by [`to_lines`](super::to_lines),
/// [`to_tsv`](super::to_tsv), [`to_csv`](super::to_csv) and [`to_json_lines`](super::to_json_lines).
///
/// Each subtask writes into a hidden file (its name starts with `.flow~`). At a checkpoint that file is synced to
/// disk, and once the checkpoint is complete it gets its name, `part-<subtask>-<checkpoint>-<number>.<extension>`.
/// Readers therefore see whole checkpoints only, and never a file that changes. The names of no two checkpoints are
/// the same, and a file that is there already is never replaced.
///
/// Those who read finished files may move or remove them once the job has completed one more checkpoint.
#[derive(Clone, Debug)]
pub struct FileSink<E> {
    dir: PathBuf,
    prefix: String,
    roll_at: u64,
    overwrite: bool,
    pub(super) encoder: E,
}

impl<E: Encoder> FileSink<E> {
    pub(super) fn new(dir: impl Into<PathBuf>, encoder: E) -> Self {
        FileSink { dir: dir.into(), prefix: "part".to_owned(), roll_at: u64::MAX, overwrite: false, encoder }
    }

    /// Begins another file when one has reached `bytes`. Without it, a subtask writes one file per checkpoint.
    #[must_use]
    pub fn roll_at(mut self, bytes: u64) -> Self {
        self.roll_at = bytes;
        self
    }

    /// What the names of finished files begin with; `part` unless set. Two sinks that write into the same directory
    /// need different ones.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Removes the finished files of an earlier run when the job starts afresh, which is refused otherwise. Files of
    /// other names stay; nothing is removed when the job resumes from a checkpoint.
    #[must_use]
    pub fn overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    fn place(&self, cx: &SinkContext) -> Place {
        let (dir, prefix, extension) = (self.dir.clone(), self.prefix.clone(), self.encoder.extension());
        Place { dir, prefix, extension, cx: cx.clone() }
    }
}

impl<E: Encoder> Sink for FileSink<E> {
    type Buffer = FileBuffer<E>;
    type Handle = PendingFiles;
    type Writer = FileWriter<E>;
    type Committer = FileCommitter;

    fn buffer(&self, _: &SinkContext) -> FileBuffer<E> {
        FileBuffer::new(self.encoder.clone())
    }

    async fn recover(&self, cx: &SinkContext, handles: Vec<Recovered<PendingFiles>>) -> Result<(), BoxError> {
        let (place, overwrite) = (self.place(cx), self.overwrite);
        tokio::task::spawn_blocking(move || recover::recover(&place, &handles, overwrite)).await?
    }

    async fn open(&self, cx: &SinkContext) -> Result<(FileWriter<E>, FileCommitter), BoxError> {
        let place = Arc::new(self.place(cx));
        Ok((FileWriter::new(Output::new(place.clone(), self.roll_at)), FileCommitter { place }))
    }

    async fn standing(
        &self,
        _: &SinkContext,
        transaction: &Recovered<PendingFiles>,
    ) -> Result<Standing, BoxError> {
        let (dir, files) = (self.dir.clone(), transaction.handle.files.clone());
        let work = tokio::task::spawn_blocking(move || commit::standing(&dir, &files));
        Ok(work.await??)
    }
}

#[diagnostic::do_not_recommend]
impl<E: Encoder> ExactlyOnce for FileSink<E> {}
