//! A sink that counts and sums, and keeps nothing: what is measured is the way to it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use flow::{
    BoxError,
    checkpoint::CheckpointId,
    sink::{
        CommitError, Committed, ExactlyOnce, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext,
        SinkWriter, Write,
    },
};

/// What a [`Tally`] has seen: how many records, and the wrapping sum of their values.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<(AtomicU64, AtomicU64)>);

impl Seen {
    /// A check value over both, and a fresh start.
    pub(crate) fn take(&self) -> u64 {
        let (count, sum) = (self.0.0.swap(0, Ordering::SeqCst), self.0.1.swap(0, Ordering::SeqCst));
        check(count, sum)
    }
}

/// The check value of a count and a sum.
pub(crate) fn check(count: u64, sum: u64) -> u64 {
    count.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ sum
}

/// A record that a [`Tally`] can add up.
pub(crate) trait Value {
    fn value(&self) -> u64;
}

impl Value for u64 {
    #[inline(always)]
    fn value(&self) -> u64 {
        *self
    }
}

impl<K> Value for (K, u64) {
    #[inline(always)]
    fn value(&self) -> u64 {
        self.1
    }
}

/// A sink that counts and sums, and keeps nothing: what is measured is the way to it.
pub(crate) struct Tally(pub(crate) Seen);

#[derive(Default)]
pub(crate) struct TallyBuffer {
    count: u64,
    sum: u64,
}

impl SinkBuffer for TallyBuffer {
    fn len(&self) -> usize {
        self.count as usize
    }
    #[inline(always)]
    fn is_full(&self) -> bool {
        false
    }
    fn clear(&mut self) {
        *self = TallyBuffer::default();
    }
}

impl<T: Value> Write<T> for TallyBuffer {
    #[inline(always)]
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        self.count += 1;
        self.sum = self.sum.wrapping_add(record.value());
        Ok(())
    }
}

pub(crate) struct TallyWriter(Seen);

impl SinkWriter for TallyWriter {
    type Buffer = TallyBuffer;
    type Handle = ();

    async fn write(&mut self, buffer: &mut TallyBuffer) -> Result<(), BoxError> {
        self.0.0.0.fetch_add(buffer.count, Ordering::SeqCst);
        self.0.0.1.fetch_add(buffer.sum, Ordering::SeqCst);
        Ok(())
    }

    async fn pre_commit(&mut self, _: CheckpointId) -> Result<Option<()>, BoxError> {
        Ok(None)
    }
}

pub(crate) struct NothingToCommit;

impl SinkCommitter for NothingToCommit {
    type Handle = ();

    async fn commit(&mut self, _: CheckpointId, (): &()) -> Result<Committed, CommitError> {
        Ok(Committed::Already)
    }
}

/// Nothing fails in a benchmark, so nothing is counted twice.
impl ExactlyOnce for Tally {}

impl Sink for Tally {
    type Buffer = TallyBuffer;
    type Handle = ();
    type Writer = TallyWriter;
    type Committer = NothingToCommit;

    fn buffer(&self, _: &SinkContext) -> TallyBuffer {
        TallyBuffer::default()
    }

    async fn recover(&self, _: &SinkContext, _: Vec<Recovered<()>>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn open(&self, _: &SinkContext) -> Result<(TallyWriter, NothingToCommit), BoxError> {
        Ok((TallyWriter(self.0.clone()), NothingToCommit))
    }
}
