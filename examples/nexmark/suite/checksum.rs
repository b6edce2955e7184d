//! A sink that keeps a checksum of the records, exactly once: the sum of their hashes, which depends neither on their
//! order nor on the parallelism.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hash},
    sync::{Arc, Mutex, PoisonError},
};

use flow::{
    BoxError, TransactionHandle,
    checkpoint::CheckpointId,
    sink::{
        CommitError, Committed, ExactlyOnce, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext,
        SinkWriter, Write,
    },
};
use foldhash::fast::FixedState;

/// How many records, and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, TransactionHandle)]
pub(crate) struct Totals {
    pub(crate) records: u64,
    pub(crate) checksum: u64,
}

impl Totals {
    /// Those of some records.
    pub(crate) fn of<T: Hash>(records: impl IntoIterator<Item = T>) -> Self {
        let mut totals = Totals::default();
        records.into_iter().for_each(|record| totals.add(&record));
        totals
    }

    /// One more record.
    #[inline(always)]
    pub(crate) fn add<T: Hash>(&mut self, record: &T) {
        self.records += 1;
        self.checksum = self.checksum.wrapping_add(FixedState::default().hash_one(record));
    }

    fn plus(self, other: Totals) -> Self {
        Totals { records: self.records + other.records, checksum: self.checksum.wrapping_add(other.checksum) }
    }
}

/// The sink: what each transaction had, by subtask and checkpoint. Committing one again changes nothing.
#[derive(Clone, Default)]
pub(crate) struct Checksum(Arc<Mutex<BTreeMap<(usize, CheckpointId), Totals>>>);

impl Checksum {
    /// What is committed.
    pub(crate) fn totals(&self) -> Totals {
        let transactions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        transactions.values().copied().fold(Totals::default(), Totals::plus)
    }

    fn commit(&self, subtask: usize, checkpoint: CheckpointId, totals: Totals) -> Committed {
        let mut transactions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match transactions.insert((subtask, checkpoint), totals) {
            None => Committed::Now,
            Some(_) => Committed::Already,
        }
    }
}

/// Commits by handles, of which each counts once.
impl ExactlyOnce for Checksum {}

impl Sink for Checksum {
    type Buffer = Buffer;
    type Handle = Totals;
    type Writer = Writer;
    type Committer = Committer;

    fn buffer(&self, _: &SinkContext) -> Buffer {
        Buffer::default()
    }

    async fn recover(&self, _: &SinkContext, handles: Vec<Recovered<Totals>>) -> Result<(), BoxError> {
        for Recovered { subtask, checkpoint, handle } in handles {
            self.commit(subtask, checkpoint, handle);
        }
        Ok(())
    }

    async fn open(&self, cx: &SinkContext) -> Result<(Writer, Committer), BoxError> {
        Ok((Writer::default(), Committer { sums: self.clone(), subtask: cx.subtask }))
    }
}

/// A buffer that holds no record, only what they come to.
#[derive(Default)]
pub(crate) struct Buffer(Totals);

impl SinkBuffer for Buffer {
    fn len(&self) -> usize {
        self.0.records as usize
    }
    #[inline(always)]
    fn is_full(&self) -> bool {
        false
    }
    fn clear(&mut self) {
        self.0 = Totals::default();
    }
}

impl<T: Hash> Write<T> for Buffer {
    #[inline(always)]
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        self.0.add(&record);
        Ok(())
    }
}

/// Adds up what an epoch has.
#[derive(Default)]
pub(crate) struct Writer(Totals);

impl SinkWriter for Writer {
    type Buffer = Buffer;
    type Handle = Totals;

    async fn write(&mut self, buffer: &mut Buffer) -> Result<(), BoxError> {
        self.0 = self.0.plus(buffer.0);
        Ok(())
    }

    async fn pre_commit(&mut self, _: CheckpointId) -> Result<Option<Totals>, BoxError> {
        Ok(Some(std::mem::take(&mut self.0)).filter(|totals| totals.records > 0))
    }
}

/// Commits what an epoch had.
pub(crate) struct Committer {
    sums: Checksum,
    subtask: usize,
}

impl SinkCommitter for Committer {
    type Handle = Totals;

    async fn commit(&mut self, checkpoint: CheckpointId, totals: &Totals) -> Result<Committed, CommitError> {
        Ok(self.sums.commit(self.subtask, checkpoint, *totals))
    }
}
