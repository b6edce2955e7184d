//! A sink that a test looks into.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use flow_macros::TransactionHandle;
use tokio::sync::watch;

use super::signal::Signal;
use crate::{
    checkpoint::CheckpointId,
    error::BoxError,
    sink::{
        CommitError, Committed, ExactlyOnce, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext,
        SinkWriter, Write,
    },
};

/// A sink of a pipeline under test, and the handle by which the test takes what came out. Clones are the same.
///
/// Made by [`Harness::output`](super::Harness::output), or, for a test that runs its job by itself, by [`new`](Self::new).
/// It is outside of the job, as a database would be: what is
/// committed stays, whatever becomes of the job, and what was emitted and not committed is gone when the job goes back to
/// a checkpoint before it.
pub struct Output<T>(Arc<Shared<T>>);

struct Shared<T> {
    outside: Mutex<Outside<T>>,
    held: watch::Sender<bool>,
    signal: Signal,
}

struct Outside<T> {
    /// Written since the last barrier, by operator and subtask.
    written: BTreeMap<(String, usize), Vec<T>>,
    pending: BTreeMap<Transaction, Vec<T>>,
    /// Not taken by the test yet.
    committed: BTreeMap<Transaction, Vec<T>>,
    done: BTreeSet<Transaction>,
}

/// What names a transaction of this sink.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, TransactionHandle)]
pub struct Transaction {
    checkpoint: u64,
    operator: String,
    subtask: usize,
    attempt: u64,
}

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        Output(Arc::clone(&self.0))
    }
}

impl<T> std::fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outside = self.outside();
        let count = |records: &BTreeMap<Transaction, Vec<T>>| records.values().map(Vec::len).sum::<usize>();
        f.debug_struct("Output")
            .field("committed", &count(&outside.committed))
            .field("pending", &count(&outside.pending))
            .finish_non_exhaustive()
    }
}

impl<T> Output<T> {
    /// One that no harness knows.
    #[must_use]
    pub fn new() -> Self {
        Output::watched_by(Signal::default())
    }

    pub(super) fn watched_by(signal: Signal) -> Self {
        let outside = Outside {
            written: BTreeMap::new(),
            pending: BTreeMap::new(),
            committed: BTreeMap::new(),
            done: BTreeSet::new(),
        };
        Output(Arc::new(Shared { outside: Mutex::new(outside), held: watch::Sender::new(false), signal }))
    }

    /// What was committed since it was called last: in the order of checkpoints, of the subtasks of the sink in each, and
    /// then in the order in which the subtask wrote it.
    #[must_use]
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.outside().committed).into_values().flatten().collect()
    }

    /// As [`take`](Self::take), sorted: for pipelines in which the order of records is nobody's promise.
    #[must_use]
    pub fn take_sorted(&self) -> Vec<T>
    where
        T: Ord,
    {
        let mut records = self.take();
        records.sort();
        records
    }

    /// How many records the job has emitted that are not committed: if it crashes now, they never were.
    #[must_use]
    pub fn uncommitted(&self) -> usize {
        let outside = self.outside();
        outside.written.values().chain(outside.pending.values()).map(Vec::len).sum()
    }

    /// It takes no more records, as a database that is away: some buffers later the job waits, up to its sources. See
    /// [`Harness::until_held_up`](super::Harness::until_held_up).
    pub fn hold(&self) {
        self.0.held.send_replace(true);
    }

    /// It takes records again.
    pub fn release(&self) {
        self.0.held.send_replace(false);
    }

    fn outside(&self) -> MutexGuard<'_, Outside<T>> {
        self.0.outside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit(&self, transaction: &Transaction) -> Result<Committed, BoxError> {
        let mut outside = self.outside();
        if outside.done.contains(transaction) {
            return Ok(Committed::Already);
        }
        let Some(records) = outside.pending.remove(transaction) else {
            return Err(format!("no output of this test knows {transaction:?}").into());
        };
        outside.committed.insert(transaction.clone(), records);
        outside.done.insert(transaction.clone());
        drop(outside);
        self.0.signal.ring();
        Ok(Committed::Now)
    }
}

impl<T> Default for Output<T> {
    fn default() -> Self {
        Output::new()
    }
}

impl<T: Clone> Output<T> {
    /// What was committed and not taken yet, as [`take`](Self::take) would give it.
    #[must_use]
    pub fn committed(&self) -> Vec<T> {
        self.outside().committed.values().flatten().cloned().collect()
    }
}

impl<T: Send + 'static> ExactlyOnce for Output<T> {}

/// Records on their way to the output.
#[derive(Debug)]
pub struct OutputBuffer<T>(Vec<T>);

/// Few, so that small tests fill several.
const BUFFER: usize = 256;

impl<T: Send + 'static> SinkBuffer for OutputBuffer<T> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_full(&self) -> bool {
        self.0.len() >= BUFFER
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T: Send + 'static> Write<T> for OutputBuffer<T> {
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        self.0.push(record);
        Ok(())
    }
}

impl<T: Send + 'static> Sink for Output<T> {
    type Buffer = OutputBuffer<T>;
    type Handle = Transaction;
    type Writer = OutputWriter<T>;
    type Committer = OutputCommitter<T>;

    fn buffer(&self, _: &SinkContext) -> OutputBuffer<T> {
        OutputBuffer(Vec::new())
    }

    async fn recover(&self, cx: &SinkContext, handles: Vec<Recovered<Transaction>>) -> Result<(), BoxError> {
        for recovered in handles {
            self.commit(&recovered.handle)?;
        }
        let mut outside = self.outside();
        outside.pending.retain(|transaction, _| transaction.operator != cx.operator);
        outside.written.retain(|(operator, _), _| *operator != cx.operator);
        Ok(())
    }

    async fn open(&self, cx: &SinkContext) -> Result<(OutputWriter<T>, OutputCommitter<T>), BoxError> {
        Ok((OutputWriter { output: self.clone(), cx: cx.clone() }, OutputCommitter(self.clone())))
    }
}

/// The writing half.
#[derive(Debug)]
pub struct OutputWriter<T> {
    output: Output<T>,
    cx: SinkContext,
}

impl<T> OutputWriter<T> {
    fn place(&self) -> (String, usize) {
        (self.cx.operator.clone(), self.cx.subtask)
    }
}

impl<T: Send + 'static> SinkWriter for OutputWriter<T> {
    type Buffer = OutputBuffer<T>;
    type Handle = Transaction;

    async fn write(&mut self, buffer: &mut OutputBuffer<T>) -> Result<(), BoxError> {
        // The sender lives in the output.
        let _ = self.output.0.held.subscribe().wait_for(|held| !held).await;
        self.output.outside().written.entry(self.place()).or_default().append(&mut buffer.0);
        self.output.0.signal.ring();
        Ok(())
    }

    async fn pre_commit(&mut self, checkpoint: CheckpointId) -> Result<Option<Transaction>, BoxError> {
        let (operator, subtask) = self.place();
        let mut outside = self.output.outside();
        let Some(records) = outside.written.remove(&(operator.clone(), subtask)) else { return Ok(None) };
        let transaction =
            Transaction { checkpoint: checkpoint.0, operator, subtask, attempt: self.cx.attempt };
        outside.pending.insert(transaction.clone(), records);
        Ok(Some(transaction))
    }
}

/// The committing half.
#[derive(Debug)]
pub struct OutputCommitter<T>(Output<T>);

impl<T: Send + 'static> SinkCommitter for OutputCommitter<T> {
    type Handle = Transaction;

    async fn commit(&mut self, _: CheckpointId, handle: &Transaction) -> Result<Committed, CommitError> {
        self.0.commit(handle).map_err(CommitError::Lost)
    }
}
