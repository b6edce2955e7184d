//! Two-phase commit for everybody: a sink of one's own by saying what a transaction is.

use std::{fmt, future::Future, mem, time::Duration};

use super::{
    CheckpointId, CommitError, Committed, ExactlyOnce, InDoubt, Recovered, Settlement, Sink, SinkBuffer,
    SinkCommitter, SinkContext, SinkWriter, Standing, TransactionHandle, Write,
};
use crate::error::BoxError;

/// A sink that writes in transactions which can be committed by name, by another process if need be.
///
/// Between two checkpoints a subtask writes into one transaction. At the barrier it is pre-committed: from then on
/// nothing of it may be lost, and nothing of it may be seen. Its [`Handle`](Self::Handle) goes into the checkpoint;
/// once that is complete, the transaction is committed by its handle alone.
///
/// ```text
/// begin -> write, write, .. -> pre_commit -> (checkpoint complete) -> commit
///                                        \-> (killed) -> recover: commit what the checkpoint names, abort the rest
/// ```
///
/// What is alive, a connection or an open file, is [`Live`](Self::Live), and never stored. `pre_commit` consumes it,
/// and `commit` gets only the handle, so there is no way to need the one for the other. Writing and committing run
/// on tasks of their own: a transaction may well wait for locks that the former one holds, for that one's commit
/// does not queue behind it.
///
/// What implements this can be the argument of `.sink(..)`, also in a pipeline that is exactly once. Clones of it are
/// the same sink. No transaction is begun for an epoch without records. Test yours with
/// [`two_phase_commit_suite`](crate::testing::two_phase_commit_suite).
///
/// The protocol is that of J. Gray, *Notes on Data Base Operating Systems* (1978), with the checkpoint's manifest as
/// the coordinator's log.
///
/// ```
/// use std::{fs, io::Write, path::PathBuf};
/// use flow::{BoxError, TransactionHandle, TwoPhaseCommit, sink::{CommitError, Committed, SinkContext, Transaction}};
///
/// /// Each transaction becomes a file.
/// #[derive(Clone)]
/// struct Spool(PathBuf);
///
/// #[derive(TransactionHandle)]
/// struct Prepared {
///     name: String,
/// }
///
/// impl TwoPhaseCommit for Spool {
///     type Record = String;
///     type Live = (String, fs::File);
///     type Handle = Prepared;
///
///     async fn begin(&self, transaction: &Transaction<'_>) -> Result<Self::Live, BoxError> {
///         let name = transaction.name();
///         let file = fs::File::create_new(self.0.join(format!("{name}.hidden")))?;
///         Ok((name, file))
///     }
///     async fn write(&self, (_, file): &mut Self::Live, records: &[String]) -> Result<(), BoxError> {
///         Ok(file.write_all(records.concat().as_bytes())?)
///     }
///     async fn pre_commit(&self, (name, file): Self::Live) -> Result<Prepared, BoxError> {
///         file.sync_all()?;
///         fs::File::open(&self.0)?.sync_all()?;
///         Ok(Prepared { name })
///     }
///     async fn commit(&self, Prepared { name }: &Prepared) -> Result<Committed, CommitError> {
///         let (hidden, visible) = (self.0.join(format!("{name}.hidden")), self.0.join(name));
///         match (fs::rename(hidden, &visible), visible.exists()) {
///             (Ok(()), _) => Ok(Committed::Now),
///             (Err(_), true) => Ok(Committed::Already),
///             (Err(error), false) => Err(CommitError::Lost(error.into())),
///         }
///     }
///     async fn abort(&self, Prepared { name }: &Prepared) -> Result<(), BoxError> {
///         Ok(fs::remove_file(self.0.join(format!("{name}.hidden"))).or_else(|error| match error.kind() {
///             std::io::ErrorKind::NotFound => Ok(()),
///             _ => Err(error),
///         })?)
///     }
///     async fn recover(&self, cx: &SinkContext) -> Result<(), BoxError> {
///         for entry in fs::read_dir(&self.0)? {
///             let name = entry?.file_name().into_string().unwrap_or_default();
///             if name.starts_with(&cx.namespace()) && name.ends_with(".hidden") {
///                 fs::remove_file(self.0.join(name))?;
///             }
///         }
///         Ok(())
///     }
/// }
///
/// // And it passes the suite.
/// use flow::testing::{SinkUnderTest, two_phase_commit_suite};
///
/// struct Spooled(tempfile::TempDir);
///
/// impl SinkUnderTest for Spooled {
///     type Sink = Spool;
///     type Record = String;
///
///     fn sink(&self) -> Spool {
///         Spool(self.0.path().to_owned())
///     }
///     fn record(&self, number: u64) -> String {
///         format!("{number}\n")
///     }
///     async fn visible(&self) -> Result<Vec<u64>, BoxError> {
///         let mut numbers = Vec::new();
///         for entry in fs::read_dir(self.0.path())? {
///             let path = entry?.path();
///             if path.extension().is_none() {
///                 for line in fs::read_to_string(path)?.lines() {
///                     numbers.push(line.parse()?);
///                 }
///             }
///         }
///         Ok(numbers)
///     }
/// }
///
/// # fn main() -> std::io::Result<()> {
/// # let runtime = tokio::runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// two_phase_commit_suite(&Spooled(tempfile::tempdir()?)).await.assert();
/// # Ok(()) })
/// # }
/// ```
pub trait TwoPhaseCommit: Clone + Send + Sync + 'static {
    /// What is written. A record of another type is converted by `Into`.
    type Record: Send + Sync + 'static;
    /// An open transaction: its connection, producer or file. Never stored; dropped without more ado when the
    /// attempt ends, upon which the transaction must end as well, at the latest by [`recover`](Self::recover).
    type Live: Send + 'static;
    /// What names a pre-committed transaction.
    type Handle: TransactionHandle;

    /// Called for each subtask before all else: the place to ask for
    /// [operator state](SinkContext::operator_state), which the context of each transaction then gives again.
    ///
    /// # Errors
    /// Those that asking gives.
    fn opened(&self, cx: &SinkContext) -> Result<(), BoxError> {
        let _ = cx;
        Ok(())
    }

    /// Opens a transaction, before the first record of an epoch.
    fn begin(
        &self,
        transaction: &Transaction<'_>,
    ) -> impl Future<Output = Result<Self::Live, BoxError>> + Send;

    /// Writes records into it. May wait: the job then slows down.
    fn write(
        &self,
        live: &mut Self::Live,
        records: &[Self::Record],
    ) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Makes it durable without making it visible, and names it.
    fn pre_commit(&self, live: Self::Live) -> impl Future<Output = Result<Self::Handle, BoxError>> + Send;

    /// Makes it visible. Called again after a lost answer or a crash, when it has to find out which it is:
    /// [`Committed::Already`] only by proof, such as a marker written in the same transaction. That the server does
    /// not know it any more is no proof; without one it is [`CommitError::Lost`].
    fn commit(&self, handle: &Self::Handle) -> impl Future<Output = Result<Committed, CommitError>> + Send;

    /// Rolls it back, if it is there: for an operator who gives up on a transaction in doubt.
    fn abort(&self, handle: &Self::Handle) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Whether it is committed already, for `txn list`; changes nothing. By default nobody knows.
    fn standing(&self, handle: &Self::Handle) -> impl Future<Output = Result<Standing, BoxError>> + Send {
        let _ = handle;
        std::future::ready(Ok(Standing::Unknown))
    }

    /// The transactions in this sink's [namespace](SinkContext::namespace) that the server holds pre-committed, for `txn
    /// list`; changes nothing. None by default.
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

    /// Called once per sink whenever the job starts, after everything that the checkpoint names has been committed:
    /// rolls back every other transaction in this sink's [namespace](SinkContext::namespace), open or pre-committed.
    /// No checkpoint knows of them, so their records will be written again.
    fn recover(&self, cx: &SinkContext) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// A transaction that is about to begin.
#[derive(Debug)]
pub struct Transaction<'a> {
    /// Whose it is.
    pub cx: &'a SinkContext,
    /// How many this attempt of the subtask has begun before.
    pub number: u64,
}

impl Transaction<'_> {
    /// A name that no other transaction of any job, sink, subtask and attempt has. It begins with the sink's
    /// [namespace](SinkContext::namespace), has at most 64 bytes, all of them in `a-z`, `0-9` and `_`, and cannot be
    /// guessed.
    #[must_use]
    pub fn name(&self) -> String {
        let Transaction { cx, number } = self;
        format!("{}{:x}_{:016x}_{number:x}", cx.namespace(), cx.subtask, cx.attempt)
    }
}

impl SinkContext {
    /// What the names of all transactions of this sink begin with, of whatever attempt and subtask, and of no other
    /// sink: for the sweep of [`TwoPhaseCommit::recover`].
    #[must_use]
    pub fn namespace(&self) -> String {
        // FNV-1a (draft-eastlake-fnv), over both names with a separator that neither holds.
        let bytes = self.job.bytes().chain([0xff]).chain(self.operator.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("flow_{hash:016x}_")
    }
}

#[diagnostic::do_not_recommend]
impl<T: TwoPhaseCommit> ExactlyOnce for T {}

#[diagnostic::do_not_recommend]
impl<T: TwoPhaseCommit> Sink for T {
    type Buffer = Records<T::Record>;
    type Handle = T::Handle;
    type Writer = TwoPhaseWriter<T>;
    type Committer = TwoPhaseCommitter<T>;

    fn buffer(&self, _: &SinkContext) -> Records<T::Record> {
        Records(Vec::new())
    }

    async fn recover(&self, cx: &SinkContext, handles: Vec<Recovered<T::Handle>>) -> Result<(), BoxError> {
        for Recovered { subtask, checkpoint, handle } in &handles {
            settle(self, handle).await.map_err(|cause| {
                format!("the transaction of subtask {subtask} at checkpoint {checkpoint} is lost: {cause}")
            })?;
        }
        TwoPhaseCommit::recover(self, cx).await
    }

    async fn open(&self, cx: &SinkContext) -> Result<(TwoPhaseWriter<T>, TwoPhaseCommitter<T>), BoxError> {
        self.opened(cx)?;
        let writer = TwoPhaseWriter { sink: self.clone(), cx: cx.clone(), begun: 0, live: None };
        Ok((writer, TwoPhaseCommitter(self.clone())))
    }

    async fn standing(
        &self,
        _: &SinkContext,
        transaction: &Recovered<T::Handle>,
    ) -> Result<Standing, BoxError> {
        TwoPhaseCommit::standing(self, &transaction.handle).await
    }

    async fn in_doubt(&self, cx: &SinkContext) -> Result<Vec<InDoubt>, BoxError> {
        TwoPhaseCommit::in_doubt(self, cx).await
    }

    async fn settle(
        &self,
        cx: &SinkContext,
        transaction: &InDoubt,
        settlement: Settlement,
    ) -> Result<(), BoxError> {
        TwoPhaseCommit::settle(self, cx, transaction, settlement).await
    }
}

/// Commits what a checkpoint names, however long its server is away.
async fn settle<T: TwoPhaseCommit>(sink: &T, handle: &T::Handle) -> Result<(), BoxError> {
    let mut pause = Duration::from_millis(50);
    loop {
        match sink.commit(handle).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Lost(cause)) => return Err(cause),
            Err(CommitError::Retry(cause)) => {
                tracing::warn!(
                    "could not commit what the checkpoint names, trying again in {pause:?}: {cause}"
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(5));
            }
        }
    }
}

/// Records on their way to a transaction.
#[derive(Debug)]
pub struct Records<R>(Vec<R>);

/// What is written at once.
const BUFFER: usize = 1024;

impl<R: Send + Sync + 'static> SinkBuffer for Records<R> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.0.len() >= BUFFER
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl<R: Send + Sync + 'static, T: Into<R>> Write<T> for Records<R> {
    #[inline]
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        self.0.push(record.into());
        Ok(())
    }
}

/// The writing half of a subtask.
pub struct TwoPhaseWriter<T: TwoPhaseCommit> {
    sink: T,
    cx: SinkContext,
    begun: u64,
    live: Option<T::Live>,
}

impl<T: TwoPhaseCommit> fmt::Debug for TwoPhaseWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwoPhaseWriter")
            .field("cx", &self.cx)
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

impl<T: TwoPhaseCommit> SinkWriter for TwoPhaseWriter<T> {
    type Buffer = Records<T::Record>;
    type Handle = T::Handle;

    async fn write(&mut self, Records(records): &mut Records<T::Record>) -> Result<(), BoxError> {
        if records.is_empty() {
            return Ok(());
        }
        let live = match &mut self.live {
            Some(live) => live,
            none => {
                let transaction = Transaction { cx: &self.cx, number: self.begun };
                let live = self.sink.begin(&transaction).await?;
                self.begun += 1;
                none.insert(live)
            }
        };
        self.sink.write(live, records).await
    }

    async fn pre_commit(&mut self, _: CheckpointId) -> Result<Option<T::Handle>, BoxError> {
        match mem::take(&mut self.live) {
            Some(live) => self.sink.pre_commit(live).await.map(Some),
            None => Ok(None),
        }
    }
}

/// The committing half of a subtask.
#[derive(Debug)]
pub struct TwoPhaseCommitter<T>(T);

impl<T: TwoPhaseCommit> SinkCommitter for TwoPhaseCommitter<T> {
    type Handle = T::Handle;

    async fn commit(&mut self, _: CheckpointId, handle: &T::Handle) -> Result<Committed, CommitError> {
        self.0.commit(handle).await
    }

    async fn abort(&mut self, _: CheckpointId, handle: &T::Handle) -> Result<(), BoxError> {
        self.0.abort(handle).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_short() {
        let mut cx = SinkContext::new("job with a very long name ".repeat(8), "counts.sink");
        cx.subtask = 0x7fff;
        cx.attempt = u64::MAX;
        let name = Transaction { cx: &cx, number: 0xffff_ffff_ffff }.name();
        assert!(
            name.len() <= 64
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        );
        assert!(name.starts_with(&cx.namespace()));
    }

    #[test]
    fn a_namespace_is_of_one_sink() {
        let of = |job: &str, operator: &str| SinkContext::new(job, operator).namespace();
        assert_eq!(of("a", "b"), of("a", "b"));
        assert_ne!(of("a", "bc"), of("ab", "c"));
        assert_ne!(of("a", "b"), of("b", "a"));
    }
}
