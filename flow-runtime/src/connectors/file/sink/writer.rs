//! The writing half of a subtask.

use std::{fmt, marker::PhantomData, mem};

use super::{FileBuffer, PendingFiles, output::Output};
use crate::{checkpoint::CheckpointId, error::BoxError, sink::SinkWriter};

/// Writes buffers into hidden files, on a thread where blocking is allowed.
pub struct FileWriter<E> {
    /// Absent while a call is at work, and after one failed.
    output: Option<Output>,
    encoder: PhantomData<fn() -> E>,
}

impl<E> FileWriter<E> {
    pub(super) fn new(output: Output) -> Self {
        FileWriter { output: Some(output), encoder: PhantomData }
    }

    async fn blocking<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Output) -> Result<R, BoxError> + Send + 'static,
    ) -> Result<R, BoxError> {
        let mut output = self.output.take().ok_or("the file sink is used after it failed")?;
        let (output, done) = tokio::task::spawn_blocking(move || {
            let done = work(&mut output)?;
            Ok::<_, BoxError>((output, done))
        })
        .await??;
        self.output = Some(output);
        Ok(done)
    }
}

impl<E> fmt::Debug for FileWriter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileWriter")
    }
}

impl<E: super::Encoder> SinkWriter for FileWriter<E> {
    type Buffer = FileBuffer<E>;
    type Handle = PendingFiles;

    async fn write(&mut self, buffer: &mut FileBuffer<E>) -> Result<(), BoxError> {
        let (bytes, header) = (mem::take(&mut buffer.bytes), mem::take(&mut buffer.header));
        let work = move |output: &mut Output| output.write(&bytes, &header).map(|()| (bytes, header));
        (buffer.bytes, buffer.header) = self.blocking(work).await?;
        Ok(())
    }

    async fn pre_commit(&mut self, checkpoint: CheckpointId) -> Result<Option<PendingFiles>, BoxError> {
        self.blocking(move |output| output.finish(checkpoint)).await
    }
}
