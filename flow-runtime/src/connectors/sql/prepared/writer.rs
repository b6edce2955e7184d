//! The writing half: rows go to the database at once, into a transaction that is prepared at the barrier.

use std::sync::Arc;

use super::{
    PreparedTransaction, TransactionId,
    control::Control,
    handle::Marker,
    live::Live,
    open::{self, Open, Unprepared},
    owner::Owner,
    patience::{LOCK_WAITS, Patience, Verdict},
    sweep,
};
use crate::{
    checkpoint::CheckpointId,
    connectors::sql::{
        buffer::StagingBuffer,
        connection::Connection,
        epoch::{self, Applied},
        error::{Fault, SqlError},
        handle::Staged,
        sink::Setup,
        url::Backend,
        work::Work,
    },
    error::BoxError,
    failpoint::{Point, reach},
    sink::{SinkBuffer, SinkContext, SinkWriter},
};

/// Up to this many bytes of an epoch are kept, so that they can be written again when the transaction is lost.
const KEPT: usize = 64 * 1024 * 1024;

/// Writes the rows of an epoch into one transaction, and prepares it.
pub struct PreparedWriter<W> {
    setup: Arc<Setup<W>>,
    owner: Owner,
    subtask: usize,
    live: Arc<Live>,
    /// The last barrier.
    last: u64,
    /// The rows of the buffer that is being written.
    batch: Staged,
    /// All rows of the epoch, or none if there are too many to keep.
    kept: Staged,
    rows: u64,
    open: Option<Open>,
    /// Between transactions.
    idle: Option<Connection>,
    /// Transactions of this epoch that may turn out to be prepared although nobody said so.
    asked: Vec<TransactionId>,
}

impl<W: Work> PreparedWriter<W> {
    pub(super) fn new(setup: Arc<Setup<W>>, owner: Owner, cx: &SinkContext, live: Arc<Live>) -> Self {
        PreparedWriter {
            setup,
            owner,
            subtask: cx.subtask,
            live,
            last: cx.restored.unwrap_or_default().0,
            batch: Staged::default(),
            kept: Staged::default(),
            rows: 0,
            open: None,
            idle: None,
            asked: Vec::new(),
        }
    }

    fn keeps_all(&self) -> bool {
        self.kept.rows() == self.rows
    }

    /// Makes sure that the transaction holds all rows of the epoch. `fresh` says whether the last buffer is not yet in
    /// one that is open. A fault counts rows from the first of the epoch.
    async fn fill(&mut self, fresh: bool) -> Result<(), Fault> {
        let before = (self.rows - self.batch.rows()) as usize;
        let Setup { work, url, .. } = &*self.setup;
        if let Some(open) = &mut self.open {
            if !fresh {
                return Ok(());
            }
            let written = open.write(work, &self.batch).await;
            return written.map_err(|Fault { error, rows }| {
                let rows = rows.map(|rows| rows.start + before..rows.end + before);
                Fault { error, rows }
            });
        }
        let rows = match () {
            () if self.keeps_all() => &self.kept,
            () if self.batch.rows() == self.rows => &self.batch,
            () => return Err(Fault::new(SqlError::Setup(self.lost()))),
        };
        let connection = match self.idle.take().or_else(|| self.live.take_spare()) {
            Some(connection) => connection,
            None => open::connect(url).await?,
        };
        let begun = Open::begin(connection, &self.owner, self.subtask, self.last + 1, W::FOREIGN).await?;
        self.open.insert(begun).write(work, rows).await
    }

    fn lost(&self) -> String {
        format!(
            "the transaction of the epoch is lost, and with {} rows it is too large to be written again from memory: the job starts again from its last checkpoint",
            self.rows
        )
    }

    async fn abandon(&mut self) {
        if let Some(open) = self.open.take() {
            self.idle = open.abandon().await;
        }
    }

    /// The whole story of a failure.
    fn tell(&self, fault: &Fault) -> BoxError {
        let place = format!(
            "sink `{}`, subtask {}, rows after checkpoint {}",
            self.owner.sink, self.subtask, self.last
        );
        epoch::tell(&place, &self.setup.work.place(), self.rows, fault)
    }

    /// After a failure: waits until it makes sense to try again, or says why it does not.
    async fn again(&mut self, fault: Fault, patience: &mut Patience) -> Result<(), BoxError> {
        self.abandon().await;
        match patience.judge(&fault, self.live.is_pending()) {
            Verdict::Refused => Err(self.refused(fault).await),
            Verdict::GiveUp => Err(self.tell(&fault)),
            Verdict::Locked => Err(format!("{}; {}", self.tell(&fault), self.who_locks()).into()),
            Verdict::Again { locked } => {
                tracing::warn!(error = %self.tell(&fault), "writing the rows of the epoch again");
                if locked && let Err(error) = sweep::sweep_at(&self.setup.url, &self.owner).await {
                    if matches!(error, SqlError::Setup(_)) {
                        return Err(error.into());
                    }
                    tracing::warn!(sink = self.owner.sink, %error, "could not look for orphaned transactions");
                }
                patience.pause().await;
                Ok(())
            }
        }
    }

    fn who_locks(&self) -> String {
        let list = match self.setup.url.backend() {
            Some(Backend::Postgres) => "SELECT * FROM pg_prepared_xacts",
            _ => "XA RECOVER",
        };
        format!(
            "given up after {LOCK_WAITS} waits for a lock: either a transaction in doubt holds it (`{list}` lists them, and so does `txn list` of the job), or another subtask or sink of this job writes the same row: `.prepared_transactions()` is only for rows that no other subtask writes, so partition the stream by their key, or leave it out, and the ledger will do"
        )
    }

    /// Something was refused for good: finds out which row it is.
    async fn refused(&mut self, fault: Fault) -> BoxError {
        let error = self.tell(&fault);
        let Fault { rows: Some(_), .. } = &fault else { return error };
        if self.keeps_all()
            && let Ok(connection) = open::connect(&self.setup.url).await
            && let (_, Applied::Failed(found, _)) =
                epoch::find_row(connection, &self.setup.work, &self.kept, fault).await
        {
            return self.tell(&found);
        }
        error
    }

    /// One of those that may be prepared after all.
    async fn adopted(&mut self) -> Result<Option<TransactionId>, SqlError> {
        if self.asked.is_empty() {
            return Ok(None);
        }
        let mut control = Control::open(&self.setup.url).await?;
        for id in &self.asked {
            if control.is_prepared(id).await? {
                return Ok(Some(id.clone()));
            }
        }
        Ok(None)
    }

    async fn try_prepare(&mut self, checkpoint: CheckpointId) -> Result<TransactionId, Unprepared> {
        // If one of these is prepared later on, it has its marker, and the one made now waits for it in vain.
        if let Some(id) = self.adopted().await? {
            self.abandon().await;
            self.live.prepared(checkpoint.0, &id, None);
            return Ok(id);
        }
        self.fill(false).await.map_err(|fault| Unprepared::Failed { fault, asked: false })?;
        reach(Point::PreparedRowsWritten);
        let Some(open) = self.open.take() else {
            return Err(SqlError::Setup(self.lost()).into());
        };
        let mut id = open.id().clone();
        let (connection, prepared) = open.prepare(&self.owner, &self.setup.work.place(), checkpoint.0).await;
        reach(Point::Prepared);
        let holds = self.setup.url.backend() == Some(Backend::Mysql);
        match (&prepared, connection) {
            (Ok(id), Some(holder)) if holds => self.live.prepared(checkpoint.0, id, Some(holder)),
            (Ok(id), idle) => {
                self.idle = idle;
                self.live.prepared(checkpoint.0, id, None);
            }
            (Err(_), idle) => self.idle = idle,
        }
        if let Err(Unprepared::Failed { asked: true, .. }) = &prepared {
            if self.setup.url.backend() == Some(Backend::Postgres) {
                id.epoch = checkpoint.0;
            }
            self.asked.push(id);
        }
        prepared
    }
}

impl<W: Work> SinkWriter for PreparedWriter<W> {
    type Buffer = W::Buffer;
    type Handle = PreparedTransaction;

    async fn write(&mut self, buffer: &mut W::Buffer) -> Result<(), BoxError> {
        if buffer.is_empty() {
            return Ok(());
        }
        self.batch.clear();
        buffer.stage(&mut self.batch)?;
        if self.keeps_all() {
            buffer.stage(&mut self.kept)?;
            if self.kept.data().len() > KEPT {
                self.kept = Staged::default();
            }
        }
        self.rows += buffer.len() as u64;
        let mut patience = Patience::new();
        while let Err(fault) = self.fill(true).await {
            self.again(fault, &mut patience).await?;
        }
        Ok(())
    }

    async fn pre_commit(
        &mut self,
        checkpoint: CheckpointId,
    ) -> Result<Option<PreparedTransaction>, BoxError> {
        if self.rows == 0 {
            self.last = checkpoint.0;
            return Ok(None);
        }
        let mut patience = Patience::new();
        let id = loop {
            match self.try_prepare(checkpoint).await {
                Ok(id) => break id,
                Err(Unprepared::Refused(why)) => return Err(why.into()),
                Err(Unprepared::Failed { fault, .. }) => self.again(fault, &mut patience).await?,
            }
        };
        let marker = Marker::new(&self.owner, self.subtask, checkpoint.0);
        let transaction = PreparedTransaction::new(id, marker, self.rows);
        self.last = checkpoint.0;
        self.kept.clear();
        self.batch.clear();
        self.asked.clear();
        self.rows = 0;
        Ok(Some(transaction))
    }
}

impl<W> std::fmt::Debug for PreparedWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedWriter")
            .field("owner", &self.owner)
            .field("subtask", &self.subtask)
            .finish_non_exhaustive()
    }
}
