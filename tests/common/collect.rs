//! A sink that collects what becomes visible, as a server outside of the job would.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hash,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use flow::TransactionHandle;
use flow::checkpoint::CheckpointId;
use flow::{
    BoxError,
    sink::{
        CommitError, Committed, ExactlyOnce, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext,
        SinkWriter, Write,
    },
};

use super::Fuse;

/// The outside: what was written to it outlives attempts and runs. Clones are the same.
pub(crate) struct Collected<T>(Arc<Shared<T>>);

struct Shared<T> {
    server: Mutex<Server<T>>,
    changed: Condvar,
    /// Records that writers have taken, visible or not.
    written: AtomicU64,
}

struct Server<T> {
    visible: Vec<T>,
    /// Pre-committed, and not visible yet.
    pending: BTreeMap<Transaction, Vec<T>>,
    committed: BTreeSet<Transaction>,
    commits: u64,
    faults: Vec<(Fault, Fuse)>,
    pause: Duration,
    on_commit: Option<Arc<dyn Fn(u64) + Send + Sync>>,
}

/// Where the sink fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    Open,
    Recover,
    Write,
    WritePanic,
    PreCommit,
    CommitRetry,
    CommitLost,
    CommitPanic,
    /// The commit happens, and the answer is lost.
    CommitUnheard,
}

/// What names a transaction of this sink.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, TransactionHandle)]
pub(crate) struct Transaction {
    operator: String,
    checkpoint: u64,
    subtask: usize,
    attempt: u64,
}

impl<T> Clone for Collected<T> {
    fn clone(&self) -> Self {
        Collected(Arc::clone(&self.0))
    }
}

impl<T> Collected<T> {
    pub(crate) fn new() -> Self {
        let server = Server {
            visible: Vec::new(),
            pending: BTreeMap::new(),
            committed: BTreeSet::new(),
            commits: 0,
            faults: Vec::new(),
            pause: Duration::ZERO,
            on_commit: None,
        };
        Collected(Arc::new(Shared {
            server: Mutex::new(server),
            changed: Condvar::new(),
            written: AtomicU64::new(0),
        }))
    }

    /// The sink fails there as long as the fuse blows.
    pub(crate) fn failing(self, fault: Fault, fuse: &Fuse) -> Self {
        self.server().faults.push((fault, fuse.clone()));
        self
    }

    /// The sink takes so long for each buffer.
    pub(crate) fn slow(self, pause: Duration) -> Self {
        self.server().pause = pause;
        self
    }

    /// Called with the number of its checkpoint before a transaction is committed.
    pub(crate) fn on_commit(self, f: impl Fn(u64) + Send + Sync + 'static) -> Self {
        self.server().on_commit = Some(Arc::new(f));
        self
    }

    fn server(&self) -> MutexGuard<'_, Server<T>> {
        self.0.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fails(&self, fault: Fault) -> bool {
        let fuse = self.server().faults.iter().find(|(at, _)| *at == fault).map(|(_, fuse)| fuse.clone());
        fuse.is_some_and(|fuse| fuse.blows())
    }

    fn check(&self, fault: Fault) -> Result<(), BoxError> {
        if self.fails(fault) { Err(format!("the server refused: {fault:?}").into()) } else { Ok(()) }
    }

    /// A sink whose records become visible at a commit.
    pub(crate) fn transactional(&self) -> Transactional<T> {
        Transactional(self.clone())
    }

    /// A sink whose records become visible at once, also those of an attempt that fails.
    pub(crate) fn at_once(&self) -> AtOnce<T> {
        AtOnce(self.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.server().visible.len()
    }

    /// How many records the writers have taken.
    pub(crate) fn written(&self) -> u64 {
        self.0.written.load(Ordering::SeqCst)
    }

    /// How many transactions were committed.
    pub(crate) fn commits(&self) -> u64 {
        self.server().commits
    }

    /// Waits until what is visible is as wanted.
    #[track_caller]
    pub(crate) fn wait_for(&self, wanted: impl Fn(&[T]) -> bool) {
        self.wait_until(|server| wanted(&server.visible));
    }

    /// Waits until so many transactions are committed.
    #[track_caller]
    pub(crate) fn wait_for_commits(&self, commits: u64) {
        self.wait_until(|server| server.commits >= commits);
    }

    /// Waits until so many transactions are pre-committed and not committed.
    #[track_caller]
    pub(crate) fn wait_for_pending(&self, transactions: usize) {
        self.wait_until(|server| server.pending.len() >= transactions);
    }

    /// How many transactions are pre-committed and not committed.
    pub(crate) fn pending(&self) -> usize {
        self.server().pending.len()
    }

    #[track_caller]
    fn wait_until(&self, wanted: impl Fn(&Server<T>) -> bool) {
        let limit = Duration::from_secs(30);
        let waited = self.0.changed.wait_timeout_while(self.server(), limit, |server| !wanted(server));
        let waited = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.1.timed_out(), "what the test waits for never became visible");
    }
}

impl<T: Clone> Collected<T> {
    /// What is visible, in the order in which it became so.
    pub(crate) fn records(&self) -> Vec<T> {
        self.server().visible.clone()
    }
}

impl<T: Clone + Ord> Collected<T> {
    /// What is visible, to be compared as a multiset.
    pub(crate) fn sorted(&self) -> Vec<T> {
        super::sorted(self.records())
    }
}

impl<K: Clone + Ord + Hash, V: Clone> Collected<(K, V)> {
    /// The values of each key, in order.
    pub(crate) fn by_key(&self) -> BTreeMap<K, Vec<V>> {
        let mut values = BTreeMap::<K, Vec<V>>::new();
        for (key, value) in self.records() {
            values.entry(key).or_default().push(value);
        }
        values
    }
}

/// See [`Collected::transactional`].
pub(crate) struct Transactional<T>(Collected<T>);

/// See [`Collected::at_once`].
pub(crate) struct AtOnce<T>(Collected<T>);

impl<T: Send + 'static> ExactlyOnce for Transactional<T> {}

/// Few records, so that small tests fill several.
const BUFFER: usize = 256;

pub(crate) struct Buffer<T>(Vec<T>);

impl<T: Send + 'static> SinkBuffer for Buffer<T> {
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

impl<T: Send + 'static> Write<T> for Buffer<T> {
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        self.0.push(record);
        Ok(())
    }
}

impl<T: Send + 'static> Sink for Transactional<T> {
    type Buffer = Buffer<T>;
    type Handle = Transaction;
    type Writer = TransactionalWriter<T>;
    type Committer = Committer<T>;

    fn buffer(&self, _: &SinkContext) -> Buffer<T> {
        Buffer(Vec::new())
    }

    async fn recover(&self, cx: &SinkContext, handles: Vec<Recovered<Transaction>>) -> Result<(), BoxError> {
        self.0.check(Fault::Recover)?;
        for recovered in handles {
            self.0.commit(&recovered.handle)?;
        }
        self.0.server().pending.retain(|transaction, _| transaction.operator != cx.operator);
        Ok(())
    }

    async fn open(&self, cx: &SinkContext) -> Result<(TransactionalWriter<T>, Committer<T>), BoxError> {
        self.0.check(Fault::Open)?;
        let writer = TransactionalWriter { collected: self.0.clone(), cx: cx.clone(), records: Vec::new() };
        Ok((writer, Committer(self.0.clone())))
    }
}

pub(crate) struct TransactionalWriter<T> {
    collected: Collected<T>,
    cx: SinkContext,
    records: Vec<T>,
}

impl<T> Collected<T> {
    /// What happens at every buffer.
    async fn receive(&self, records: usize) -> Result<(), BoxError> {
        let pause = self.server().pause;
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        assert!(!self.fails(Fault::WritePanic), "the writer panicked");
        self.0.written.fetch_add(records as u64, Ordering::SeqCst);
        self.check(Fault::Write)
    }

    fn commit(&self, transaction: &Transaction) -> Result<Committed, BoxError> {
        let mut server = self.server();
        if server.committed.contains(transaction) {
            return Ok(Committed::Already);
        }
        let Some(mut records) = server.pending.remove(transaction) else {
            return Err(format!("{transaction:?} is unknown").into());
        };
        server.visible.append(&mut records);
        server.committed.insert(transaction.clone());
        server.commits += 1;
        self.0.changed.notify_all();
        Ok(Committed::Now)
    }
}

impl<T: Send + 'static> SinkWriter for TransactionalWriter<T> {
    type Buffer = Buffer<T>;
    type Handle = Transaction;

    async fn write(&mut self, buffer: &mut Buffer<T>) -> Result<(), BoxError> {
        self.collected.receive(buffer.0.len()).await?;
        self.records.append(&mut buffer.0);
        Ok(())
    }

    async fn pre_commit(&mut self, checkpoint: CheckpointId) -> Result<Option<Transaction>, BoxError> {
        self.collected.check(Fault::PreCommit)?;
        if self.records.is_empty() {
            return Ok(None);
        }
        let transaction = Transaction {
            operator: self.cx.operator.clone(),
            checkpoint: checkpoint.0,
            subtask: self.cx.subtask,
            attempt: self.cx.attempt,
        };
        let records = std::mem::take(&mut self.records);
        self.collected.server().pending.insert(transaction.clone(), records);
        self.collected.0.changed.notify_all();
        Ok(Some(transaction))
    }
}

pub(crate) struct Committer<T>(Collected<T>);

impl<T: Send + 'static> SinkCommitter for Committer<T> {
    type Handle = Transaction;

    async fn commit(&mut self, _: CheckpointId, handle: &Transaction) -> Result<Committed, CommitError> {
        let on_commit = self.0.server().on_commit.clone();
        if let Some(on_commit) = on_commit {
            on_commit(handle.checkpoint);
        }
        assert!(!self.0.fails(Fault::CommitPanic), "the committer panicked");
        self.0.check(Fault::CommitRetry).map_err(CommitError::Retry)?;
        self.0.check(Fault::CommitLost).map_err(CommitError::Lost)?;
        let committed = self.0.commit(handle).map_err(CommitError::Lost)?;
        self.0.check(Fault::CommitUnheard).map_err(CommitError::Retry)?;
        Ok(committed)
    }
}

impl<T: Send + 'static> Sink for AtOnce<T> {
    type Buffer = Buffer<T>;
    type Handle = ();
    type Writer = AtOnceWriter<T>;
    type Committer = NoCommitter;

    fn buffer(&self, _: &SinkContext) -> Buffer<T> {
        Buffer(Vec::new())
    }

    async fn recover(&self, _: &SinkContext, _: Vec<Recovered<()>>) -> Result<(), BoxError> {
        self.0.check(Fault::Recover)
    }

    async fn open(&self, _: &SinkContext) -> Result<(AtOnceWriter<T>, NoCommitter), BoxError> {
        self.0.check(Fault::Open)?;
        Ok((AtOnceWriter(self.0.clone()), NoCommitter))
    }
}

pub(crate) struct AtOnceWriter<T>(Collected<T>);

impl<T: Send + 'static> SinkWriter for AtOnceWriter<T> {
    type Buffer = Buffer<T>;
    type Handle = ();

    async fn write(&mut self, buffer: &mut Buffer<T>) -> Result<(), BoxError> {
        self.0.receive(buffer.0.len()).await?;
        self.0.server().visible.append(&mut buffer.0);
        self.0.0.changed.notify_all();
        Ok(())
    }

    async fn pre_commit(&mut self, _: CheckpointId) -> Result<Option<()>, BoxError> {
        self.0.check(Fault::PreCommit)?;
        Ok(None)
    }
}

pub(crate) struct NoCommitter;

impl SinkCommitter for NoCommitter {
    type Handle = ();

    async fn commit(&mut self, _: CheckpointId, (): &()) -> Result<Committed, CommitError> {
        Ok(Committed::Already)
    }
}
