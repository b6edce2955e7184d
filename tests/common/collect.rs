//! A sink that collects what becomes visible, as a server outside of the job would, and fails where a test says so: the
//! [`Output`] of the harness behind what happens to servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hash,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use flow::checkpoint::CheckpointId;
use flow::{
    BoxError,
    sink::{
        CommitError, Committed, ExactlyOnce, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext,
        SinkWriter,
    },
    testing::Output,
};

use super::Fuse;

type Buffer<T> = <Output<T> as Sink>::Buffer;
type Transaction<T> = <Output<T> as Sink>::Handle;

/// The outside: what was written to it outlives attempts and runs. Clones are the same.
pub(crate) struct Collected<T: Send + 'static> {
    output: Output<T>,
    shared: Arc<Shared<T>>,
}

struct Shared<T: Send + 'static> {
    server: Mutex<Server<T>>,
    changed: Condvar,
    /// Records that writers have taken, visible or not.
    written: AtomicU64,
}

struct Server<T: Send + 'static> {
    /// Pre-committed, and not visible yet, each with its operator.
    pending: BTreeSet<(Transaction<T>, String)>,
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

impl<T: Send + 'static> Clone for Collected<T> {
    fn clone(&self) -> Self {
        Collected { output: self.output.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<T: Send + 'static> Collected<T> {
    pub(crate) fn new() -> Self {
        let server = Server {
            pending: BTreeSet::new(),
            commits: 0,
            faults: Vec::new(),
            pause: Duration::ZERO,
            on_commit: None,
        };
        let (server, changed, written) = (Mutex::new(server), Condvar::new(), AtomicU64::new(0));
        Collected { output: Output::new(), shared: Arc::new(Shared { server, changed, written }) }
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
        self.shared.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fails(&self, fault: Fault) -> bool {
        let fuse = self.server().faults.iter().find(|(at, _)| *at == fault).map(|(_, fuse)| fuse.clone());
        fuse.is_some_and(|fuse| fuse.blows())
    }

    fn check(&self, fault: Fault) -> Result<(), BoxError> {
        if self.fails(fault) { Err(format!("the server refused: {fault:?}").into()) } else { Ok(()) }
    }

    /// A sink whose records become visible at a commit.
    pub(crate) fn transactional(&self) -> Collecting<T, false> {
        Collecting(self.clone())
    }

    /// A sink whose records become visible at once, also those of an attempt that fails.
    pub(crate) fn at_once(&self) -> Collecting<T, true> {
        Collecting(self.clone())
    }

    /// How many records the writers have taken.
    pub(crate) fn written(&self) -> u64 {
        self.shared.written.load(Ordering::SeqCst)
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
        let waited = self.shared.changed.wait_timeout_while(self.server(), limit, |server| !wanted(server));
        let waited = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.1.timed_out(), "what the test waits for never became visible");
    }

    /// What happens at every buffer.
    async fn receive(&self, records: usize) -> Result<(), BoxError> {
        let pause = self.server().pause;
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        assert!(!self.fails(Fault::WritePanic), "the writer panicked");
        self.shared.written.fetch_add(records as u64, Ordering::SeqCst);
        self.check(Fault::Write)
    }

    /// Changes what tests wait for.
    fn change(&self, f: impl FnOnce(&mut Server<T>)) {
        f(&mut self.server());
        self.shared.changed.notify_all();
    }

    fn committed(&self, transaction: &Transaction<T>) {
        self.change(|server| {
            let before = server.pending.len();
            server.pending.retain(|(pending, _)| pending != transaction);
            server.commits += (before - server.pending.len()) as u64;
        });
    }
}

impl<T: Clone + Send + 'static> Collected<T> {
    /// What is visible, in the order of checkpoints.
    pub(crate) fn records(&self) -> Vec<T> {
        self.output.committed()
    }

    pub(crate) fn len(&self) -> usize {
        self.records().len()
    }

    /// Waits until what is visible is as wanted.
    #[track_caller]
    pub(crate) fn wait_for(&self, wanted: impl Fn(&[T]) -> bool) {
        self.wait_until(|_| wanted(&self.output.committed()));
    }
}

impl<T: Clone + Ord + Send + 'static> Collected<T> {
    /// What is visible, to be compared as a multiset.
    pub(crate) fn sorted(&self) -> Vec<T> {
        super::sorted(self.records())
    }
}

impl<K: Clone + Ord + Hash + Send + 'static, V: Clone + Send + 'static> Collected<(K, V)> {
    /// The values of each key, in order.
    pub(crate) fn by_key(&self) -> BTreeMap<K, Vec<V>> {
        let mut values = BTreeMap::<K, Vec<V>>::new();
        for (key, value) in self.records() {
            values.entry(key).or_default().push(value);
        }
        values
    }
}

/// See [`Collected::transactional`] and [`Collected::at_once`].
pub(crate) struct Collecting<T: Send + 'static, const AT_ONCE: bool>(Collected<T>);

impl<T: Send + 'static> ExactlyOnce for Collecting<T, false> {}

impl<T: Send + 'static, const AT_ONCE: bool> Sink for Collecting<T, AT_ONCE> {
    type Buffer = Buffer<T>;
    type Handle = Transaction<T>;
    type Writer = Writer<T, AT_ONCE>;
    type Committer = Committer<T>;

    fn buffer(&self, cx: &SinkContext) -> Buffer<T> {
        self.0.output.buffer(cx)
    }

    async fn recover(
        &self,
        cx: &SinkContext,
        handles: Vec<Recovered<Transaction<T>>>,
    ) -> Result<(), BoxError> {
        self.0.check(Fault::Recover)?;
        let transactions: Vec<_> = handles.iter().map(|recovered| recovered.handle.clone()).collect();
        self.0.output.recover(cx, handles).await?;
        transactions.iter().for_each(|transaction| self.0.committed(transaction));
        self.0.change(|server| server.pending.retain(|(_, operator)| *operator != cx.operator));
        Ok(())
    }

    async fn open(&self, cx: &SinkContext) -> Result<(Writer<T, AT_ONCE>, Committer<T>), BoxError> {
        self.0.check(Fault::Open)?;
        let (writer, committer) = self.0.output.open(cx).await?;
        let at_once = if AT_ONCE { Some(self.0.output.open(cx).await?.1) } else { None };
        let (collected, operator) = (self.0.clone(), cx.operator.clone());
        let writer = Writer { collected, operator, writer, buffers: 0, at_once };
        Ok((writer, Committer { collected: self.0.clone(), committer }))
    }
}

pub(crate) struct Writer<T: Send + 'static, const AT_ONCE: bool> {
    collected: Collected<T>,
    operator: String,
    writer: <Output<T> as Sink>::Writer,
    /// At once, each buffer is a transaction.
    buffers: u64,
    at_once: Option<<Output<T> as Sink>::Committer>,
}

impl<T: Send + 'static, const AT_ONCE: bool> SinkWriter for Writer<T, AT_ONCE> {
    type Buffer = Buffer<T>;
    type Handle = Transaction<T>;

    async fn write(&mut self, buffer: &mut Buffer<T>) -> Result<(), BoxError> {
        self.collected.receive(buffer.len()).await?;
        self.writer.write(buffer).await?;
        if let Some(committer) = &mut self.at_once {
            self.buffers += 1;
            let number = CheckpointId(self.buffers);
            if let Some(transaction) = self.writer.pre_commit(number).await? {
                committer.commit(number, &transaction).await?;
                self.collected.change(|_| ());
            }
        }
        Ok(())
    }

    async fn pre_commit(&mut self, checkpoint: CheckpointId) -> Result<Option<Transaction<T>>, BoxError> {
        self.collected.check(Fault::PreCommit)?;
        let transaction = self.writer.pre_commit(checkpoint).await?;
        if let Some(transaction) = &transaction {
            let pending = (transaction.clone(), self.operator.clone());
            self.collected.change(|server| _ = server.pending.insert(pending));
        }
        Ok(transaction)
    }
}

pub(crate) struct Committer<T: Send + 'static> {
    collected: Collected<T>,
    committer: <Output<T> as Sink>::Committer,
}

impl<T: Send + 'static> SinkCommitter for Committer<T> {
    type Handle = Transaction<T>;

    async fn commit(
        &mut self,
        checkpoint: CheckpointId,
        transaction: &Transaction<T>,
    ) -> Result<Committed, CommitError> {
        let collected = &self.collected;
        let on_commit = collected.server().on_commit.clone();
        if let Some(on_commit) = on_commit {
            on_commit(checkpoint.0);
        }
        assert!(!collected.fails(Fault::CommitPanic), "the committer panicked");
        collected.check(Fault::CommitRetry).map_err(CommitError::Retry)?;
        collected.check(Fault::CommitLost).map_err(CommitError::Lost)?;
        let committed = self.committer.commit(checkpoint, transaction).await?;
        collected.committed(transaction);
        collected.check(Fault::CommitUnheard).map_err(CommitError::Retry)?;
        Ok(committed)
    }
}
