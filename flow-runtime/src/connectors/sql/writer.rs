//! The writing half: it stages, or it writes at once.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    buffer::StagingBuffer, connection::Connection, epoch, error::Class, handle::Staged, retry::Backoff,
    sink::Setup, work::Work,
};
use crate::{
    checkpoint::CheckpointId,
    error::BoxError,
    sink::{SinkContext, SinkWriter},
};

/// Stages the rows of an epoch in memory; the database hears nothing of them before the checkpoint is complete.
#[derive(Debug)]
pub struct LedgerWriter<B> {
    staged: Staged,
    /// The last checkpoint at which there were rows.
    previous: u64,
    buffer: PhantomData<fn(B)>,
}

impl<B> LedgerWriter<B> {
    pub(super) fn new(previous: u64) -> Self {
        LedgerWriter { staged: Staged::default(), previous, buffer: PhantomData }
    }
}

impl<B: StagingBuffer> SinkWriter for LedgerWriter<B> {
    type Buffer = B;
    type Handle = Staged;

    async fn write(&mut self, buffer: &mut B) -> Result<(), BoxError> {
        if buffer.is_empty() { Ok(()) } else { buffer.stage(&mut self.staged) }
    }

    async fn pre_commit(&mut self, checkpoint: CheckpointId) -> Result<Option<Staged>, BoxError> {
        if self.staged.rows() == 0 {
            return Ok(None);
        }
        let mut staged = self.staged.take();
        staged.previous = std::mem::replace(&mut self.previous, checkpoint.0);
        Ok(Some(staged))
    }
}

/// How long a writer tries again before it gives up and the job restarts.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes each buffer at once.
pub struct DirectWriter<W> {
    setup: Arc<Setup<W>>,
    connection: Option<Connection>,
    staged: Staged,
    /// For messages.
    owner: String,
}

impl<W: Work> DirectWriter<W> {
    pub(super) async fn open(setup: Arc<Setup<W>>, cx: &SinkContext) -> Result<Self, BoxError> {
        let connection = Some(Connection::open(&setup.url).await?);
        let owner = format!("sink `{}`", cx.operator);
        Ok(DirectWriter { setup, connection, staged: Staged::default(), owner })
    }

    async fn try_write(&mut self) -> Result<(), (BoxError, Class)> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.setup.url).await.map_err(|e| (e.into(), Class::Transient))?,
        };
        let (connection, written) = epoch::write(connection, &self.setup.work, &self.staged).await;
        self.connection = connection;
        written.map_err(|(fault, class)| {
            let place = self.setup.work.place();
            (epoch::tell(&self.owner, &place, self.staged.rows(), &fault), class)
        })
    }
}

impl<W: Work> SinkWriter for DirectWriter<W> {
    type Buffer = W::Buffer;
    type Handle = ();

    async fn write(&mut self, buffer: &mut W::Buffer) -> Result<(), BoxError> {
        use crate::sink::SinkBuffer;
        if buffer.is_empty() {
            return Ok(());
        }
        self.staged.clear();
        buffer.stage(&mut self.staged)?;
        let deadline = Instant::now() + PATIENCE;
        let mut backoff = Backoff::new();
        loop {
            match self.try_write().await {
                Ok(()) => return Ok(()),
                Err((error, Class::Permanent)) => return Err(error),
                Err((error, Class::Unclear)) if backoff.tries() >= 5 => return Err(error),
                Err((error, _)) if Instant::now() >= deadline => return Err(error),
                Err((error, _)) => {
                    tracing::warn!(%error, "writing again");
                    backoff.wait().await;
                }
            }
        }
    }

    async fn pre_commit(&mut self, _: CheckpointId) -> Result<Option<()>, BoxError> {
        Ok(None)
    }
}

impl<W> std::fmt::Debug for DirectWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectWriter").field("owner", &self.owner).finish_non_exhaustive()
    }
}
