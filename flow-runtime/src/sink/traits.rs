//! The public traits of sinks.

use std::{fmt, future::Future};

use super::{States, TransactionHandle};
use crate::{checkpoint::CheckpointId, error::BoxError};

/// Where a sink's subtask stands in the job, and which names it may use outside.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SinkContext {
    /// The job's name. Together with `operator` and `subtask` it identifies this writer across restarts.
    pub job: String,
    /// The uid of the sink's operator.
    pub operator: String,
    /// The index of this subtask, from 0.
    pub subtask: usize,
    /// How many subtasks write to this sink.
    pub parallelism: usize,
    /// A number that no other attempt of this job has (random), for names that must not clash with those of an
    /// attempt that was killed.
    pub attempt: u64,
    /// The checkpoint from which this attempt resumed, if any: everything up to it is, or is about to be,
    /// committed; nothing after it may become visible.
    pub restored: Option<CheckpointId>,
    /// What it remembers.
    pub(crate) states: States,
}

impl SinkContext {
    /// That of the only subtask of a sink, in a first attempt. The runtime makes its own; this is for whoever tests a
    /// sink without a job.
    pub fn new(job: impl Into<String>, operator: impl Into<String>) -> Self {
        SinkContext {
            job: job.into(),
            operator: operator.into(),
            subtask: 0,
            parallelism: 1,
            attempt: 0,
            restored: None,
            states: States::Unkept,
        }
    }
}

/// A handle that a restored checkpoint carried: pre-committed then, and to be committed now.
#[derive(Debug)]
pub struct Recovered<H> {
    /// The subtask that wrote it, which may lie beyond the present parallelism.
    pub subtask: usize,
    /// The checkpoint at whose barrier it was pre-committed.
    pub checkpoint: CheckpointId,
    /// What names the transaction.
    pub handle: H,
}

/// How a commit ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// By this call.
    Now,
    /// By an earlier one, whose acknowledgement was lost.
    Already,
}

/// How a commit ended badly.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The server was busy or away; the same call may succeed later. The runtime retries with backoff.
    #[error("{0}")]
    Retry(BoxError),
    /// The transaction is gone, or another job has taken over: retrying cannot help, and the job must stop.
    #[error("{0}")]
    Lost(BoxError),
}

/// A sink: what to write to. It is a description until the job opens it.
///
/// Per subtask there are a writer and a committer, each on a task of its own and with a connection of its own. At
/// the barrier of a checkpoint the writer pre-commits and returns a [`Handle`](Self::Handle); once the checkpoint is
/// complete the committer commits it. Handles that are not known to be committed are carried in every later
/// checkpoint too.
pub trait Sink: Send + Sync + 'static {
    /// What the worker fills.
    type Buffer: SinkBuffer;
    /// What names a pre-committed transaction; `()` for a sink without transactions.
    type Handle: TransactionHandle;
    /// Writes and pre-commits.
    type Writer: SinkWriter<Buffer = Self::Buffer, Handle = Self::Handle>;
    /// Commits.
    type Committer: SinkCommitter<Handle = Self::Handle>;

    /// An empty buffer for the worker of one subtask; a few are made and then used again and again.
    fn buffer(&self, cx: &SinkContext) -> Self::Buffer;

    /// What it keeps locked from the first write of an epoch until its checkpoint is complete, if it locks anything that
    /// long. Two subtasks that meet in a row there would wait for each other: the job warns where that may be.
    fn held_rows(&self) -> Option<HeldRows> {
        None
    }

    /// Called once per sink (not per subtask) whenever the job starts, before anything is written: commits
    /// `handles`, in order, each idempotently, and rolls back whatever else an earlier attempt of this sink left.
    /// Connecting, checking privileges and creating tables belong here too. `cx.subtask` is 0.
    fn recover(
        &self,
        cx: &SinkContext,
        handles: Vec<Recovered<Self::Handle>>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Opens the two halves for one subtask.
    fn open(
        &self,
        cx: &SinkContext,
    ) -> impl Future<Output = Result<(Self::Writer, Self::Committer), BoxError>> + Send;

    /// Opens the committing half alone, for an operator who settles transactions while the job does not run (`txn
    /// commit`). Unlike at [`recover`](Self::recover), nothing is rolled back. `carried` is all that the checkpoint
    /// carries for this sink. By default [`open`](Self::open) opens it.
    fn open_committer(
        &self,
        cx: &SinkContext,
        carried: &[Recovered<Self::Handle>],
    ) -> impl Future<Output = Result<Self::Committer, BoxError>> + Send {
        let _ = carried;
        async { Ok(self.open(cx).await?.1) }
    }

    /// Whether a transaction is committed already, for `txn list`. Changes nothing, and may be asked while the job runs.
    /// By default nobody knows.
    fn standing(
        &self,
        cx: &SinkContext,
        transaction: &Recovered<Self::Handle>,
    ) -> impl Future<Output = Result<Standing, BoxError>> + Send {
        let _ = (cx, transaction);
        std::future::ready(Ok(Standing::Unknown))
    }

    /// The transactions of this sink, of whatever attempt, that its server holds pre-committed and not settled, for `txn
    /// list`. Changes nothing, and may be asked while the job runs. None by default: so it is where the checkpoint holds
    /// the records themselves.
    fn in_doubt(&self, cx: &SinkContext) -> impl Future<Output = Result<Vec<InDoubt>, BoxError>> + Send {
        let _ = cx;
        std::future::ready(Ok(Vec::new()))
    }

    /// Commits or rolls back one of those that [`in_doubt`](Self::in_doubt) found and no checkpoint carries.
    fn settle(
        &self,
        cx: &SinkContext,
        transaction: &InDoubt,
        settlement: Settlement,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        let _ = (cx, settlement);
        let error = format!("this sink cannot settle `{}` by its name", transaction.id);
        std::future::ready(Err(error.into()))
    }
}

/// How a transaction stands outside of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is committed.
    Committed,
    /// It is not.
    Pending,
    /// The sink cannot tell without trying.
    Unknown,
}

/// A transaction that a server holds pre-committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InDoubt {
    /// What its server calls it.
    pub id: String,
    /// What else there is to say, such as since when, for people.
    pub detail: String,
}

/// What to do with a transaction in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Make it visible.
    Commit,
    /// Roll it back.
    Abort,
}

/// Where a sink keeps rows locked between checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRows {
    /// The database, without the user who connects.
    pub database: String,
    /// The table, if it is known: a statement or a closure may write to any.
    pub table: Option<String>,
}

/// A sink whose output counts exactly once: it commits transactions by handle, or writing a record again changes
/// nothing (an upsert by key).
///
/// A marker, checked where a pipeline says `guarantee = exactly_once`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can neither commit nor upsert, so this pipeline cannot be exactly once",
    label = "a crash would make this sink repeat records",
    note = "after a crash the records since the last checkpoint are written again: choose `guarantee = at_least_once`, or a sink that commits or upserts, as files and SQL do"
)]
pub trait ExactlyOnce: Sink {}

/// A buffer of records on their way to a sink, filled on the worker without waiting and handed to the writer task.
pub trait SinkBuffer: Send + 'static {
    /// How many records it holds.
    fn len(&self) -> usize;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it should be handed over now. A good buffer holds some thousand records or up to 256 KiB.
    fn is_full(&self) -> bool;

    /// Forgets the records and keeps the memory.
    fn clear(&mut self);
}

/// A buffer that takes records of type `T`, which may borrow: encode or copy them.
#[diagnostic::on_unimplemented(
    message = "this sink cannot write records of type `{T}`",
    note = "convert them with `.map(..)` before the sink; the sink's documentation says what it takes"
)]
pub trait Write<T>: SinkBuffer {
    /// Adds a record.
    ///
    /// # Errors
    /// When the record cannot be encoded.
    fn write(&mut self, record: T) -> Result<(), BoxError>;
}

/// The writing half of a sink's subtask. All calls come one after the other.
pub trait SinkWriter: Send + 'static {
    /// As in [`Sink`].
    type Buffer: SinkBuffer;
    /// As in [`Sink`], which says what it has to be.
    type Handle;

    /// Writes the buffer's records; the runtime clears it afterwards. May wait: the job then slows down, with
    /// bounded memory.
    fn write(&mut self, buffer: &mut Self::Buffer) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Ends what was written since the last barrier, so that the returned handle alone can commit it, even from
    /// another process. `None` when there is nothing to commit. A sink without transactions flushes here.
    fn pre_commit(
        &mut self,
        checkpoint: CheckpointId,
    ) -> impl Future<Output = Result<Option<Self::Handle>, BoxError>> + Send;
}

/// The committing half of a sink's subtask, on a task and a connection of its own.
pub trait SinkCommitter: Send + 'static {
    /// As in [`Sink`], which says what it has to be.
    type Handle;

    /// Makes visible what `handle` names. Called in the order of the checkpoints; may be called again for the same
    /// handle.
    fn commit(
        &mut self,
        checkpoint: CheckpointId,
        handle: &Self::Handle,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send;

    /// Rolls back what `handle` names, if that has not been committed: for an operator who gives up on a transaction
    /// in doubt. A sink whose handle holds the records themselves has nothing to do, and does nothing by default.
    fn abort(
        &mut self,
        checkpoint: CheckpointId,
        handle: &Self::Handle,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        let _ = (checkpoint, handle);
        std::future::ready(Ok(()))
    }
}

impl HeldRows {
    /// Whether two sinks may write the same row.
    pub(crate) fn may_meet(&self, other: &HeldRows) -> bool {
        let same_table = match (&self.table, &other.table) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.database == other.database && same_table
    }
}

impl fmt::Display for HeldRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(f, "table `{table}` of {}", self.database),
            None => f.write_str(&self.database),
        }
    }
}

impl fmt::Display for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Committed::Now => "committed",
            Committed::Already => "already committed",
        })
    }
}
