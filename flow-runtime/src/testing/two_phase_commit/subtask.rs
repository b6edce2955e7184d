//! The runtime's part, played by the suite.

use std::{future::Future, ops, time::Duration};

use super::SinkUnderTest;
use crate::{
    error::BoxError,
    sink::{
        CheckpointId, CommitError, Committed, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext,
        SinkWriter, Write, decode_handle, encode_handle,
    },
};

/// Nothing takes as long, unless something waits for what will not come.
const LIMIT: Duration = Duration::from_secs(20);

/// A check's share of the numbers.
const SHARE: u64 = 1_000_000;

/// A check's own job and records.
pub(super) struct Range<'u, U> {
    pub(super) subject: &'u U,
    job: String,
    first: u64,
}

/// A handle as a checkpoint keeps it.
#[derive(Clone)]
pub(super) struct Carried {
    pub(super) subtask: usize,
    pub(super) checkpoint: u64,
    bytes: Vec<u8>,
}

/// A subtask of a sink in one attempt.
pub(super) struct Subtask<S: Sink> {
    sink: S,
    cx: SinkContext,
    writer: S::Writer,
    committer: S::Committer,
}

/// Ends what takes too long.
pub(super) async fn limited<T>(
    what: &str,
    work: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    match tokio::time::timeout(LIMIT, work).await {
        Ok(outcome) => outcome.map_err(|cause| format!("{what}: {cause}").into()),
        Err(_) => Err(format!("{what} did not end within {} s", LIMIT.as_secs()).into()),
    }
}

impl<'u, U: SinkUnderTest> Range<'u, U> {
    pub(super) fn new(subject: &'u U, name: &str, number: u64) -> Self {
        let job = format!("conformance-{}", name.replace('_', "-"));
        Range { subject, job, first: number * SHARE }
    }

    /// The same numbers in another job.
    pub(super) fn other_job(&self) -> Self {
        Range { subject: self.subject, job: format!("{}-other", self.job), first: self.first }
    }

    fn context(
        &self,
        attempt: u64,
        subtask: usize,
        parallelism: usize,
        restored: Option<u64>,
    ) -> SinkContext {
        let mut cx = SinkContext::new(self.job.clone(), "records.sink");
        cx.subtask = subtask;
        cx.parallelism = parallelism;
        // Unlike any of an earlier run against the same server.
        cx.attempt = attempt ^ (u64::from(std::process::id()) << 32);
        cx.restored = restored.map(CheckpointId);
        cx
    }

    /// A new process: settles what a checkpoint carried.
    pub(super) async fn recover(
        &self,
        attempt: u64,
        parallelism: usize,
        restored: Option<u64>,
        carried: &[Carried],
    ) -> Result<(), BoxError> {
        let sink = self.subject.sink();
        let mut handles = Vec::new();
        for Carried { subtask, checkpoint, bytes } in carried {
            let handle = decode_handle(bytes).map_err(|e| format!("the handle cannot be read: {e}"))?;
            handles.push(Recovered { subtask: *subtask, checkpoint: CheckpointId(*checkpoint), handle });
        }
        limited("recover", sink.recover(&self.context(attempt, 0, parallelism, restored), handles)).await
    }

    /// Opens a subtask, once its sink is recovered.
    pub(super) async fn open(
        &self,
        attempt: u64,
        subtask: usize,
        parallelism: usize,
        restored: Option<u64>,
    ) -> Result<Subtask<U::Sink>, BoxError> {
        let (sink, cx) = (self.subject.sink(), self.context(attempt, subtask, parallelism, restored));
        let (writer, committer) = limited("open", sink.open(&cx)).await?;
        Ok(Subtask { sink, cx, writer, committer })
    }

    /// The first attempt's only subtask.
    pub(super) async fn start(&self) -> Result<Subtask<U::Sink>, BoxError> {
        self.recover(1, 1, None, &[]).await?;
        self.open(1, 0, 1, None).await
    }

    /// Writes some of the range's records.
    pub(super) async fn write(
        &self,
        subtask: &mut Subtask<U::Sink>,
        numbers: ops::Range<u64>,
    ) -> Result<(), BoxError> {
        let buffer = subtask.sink.buffer(&subtask.cx);
        self.write_by(&mut subtask.writer, buffer, numbers).await
    }

    async fn write_by(
        &self,
        writer: &mut <U::Sink as Sink>::Writer,
        mut buffer: <U::Sink as Sink>::Buffer,
        numbers: ops::Range<u64>,
    ) -> Result<(), BoxError> {
        for number in numbers {
            buffer.write(self.subject.record(self.first + number))?;
            if buffer.is_full() {
                limited("write", writer.write(&mut buffer)).await?;
                buffer.clear();
            }
        }
        if !buffer.is_empty() {
            limited("write", writer.write(&mut buffer)).await?;
        }
        Ok(())
    }

    /// Writes into the next transaction while the former one is committed.
    pub(super) async fn write_while_committing(
        &self,
        subtask: &mut Subtask<U::Sink>,
        numbers: ops::Range<u64>,
        carried: &Carried,
    ) -> Result<(), BoxError> {
        let buffer = subtask.sink.buffer(&subtask.cx);
        let writing = self.write_by(&mut subtask.writer, buffer, numbers);
        let (written, committed) = tokio::join!(writing, commit::<U::Sink>(&mut subtask.committer, carried));
        written.and(committed.map(drop))
    }

    pub(super) async fn in_doubt(&self) -> Result<Option<usize>, BoxError> {
        limited("in_doubt", self.subject.in_doubt()).await
    }

    /// Requires that exactly these records are visible, each once.
    pub(super) async fn expect(&self, numbers: ops::Range<u64>, when: &str) -> Result<(), BoxError> {
        let visible = limited("visible", self.subject.visible()).await?;
        let mut own: Vec<u64> = visible
            .into_iter()
            .filter(|number| (self.first..self.first + SHARE).contains(number))
            .map(|number| number - self.first)
            .collect();
        own.sort_unstable();
        let expected: Vec<u64> = numbers.collect();
        if own == expected {
            return Ok(());
        }
        let distinct = {
            let mut distinct = own.clone();
            distinct.dedup();
            distinct.len()
        };
        Err(format!(
            "{when}, {} records should be visible, but {} are, {} of them repeats",
            expected.len(),
            own.len(),
            own.len() - distinct
        )
        .into())
    }
}

impl<S: Sink> Subtask<S> {
    /// Ends an epoch.
    pub(super) async fn pre_commit(&mut self, checkpoint: u64) -> Result<Option<Carried>, BoxError> {
        let handle = limited("pre_commit", self.writer.pre_commit(CheckpointId(checkpoint))).await?;
        let carried = |handle: &S::Handle| {
            Ok(Carried { subtask: self.cx.subtask, checkpoint, bytes: encode_handle(handle)? })
        };
        handle.as_ref().map(carried).transpose()
    }

    /// Ends an epoch that has records.
    pub(super) async fn prepare(&mut self, checkpoint: u64) -> Result<Carried, BoxError> {
        let carried = self.pre_commit(checkpoint).await?;
        carried.ok_or_else(|| "pre_commit returned no handle, though records were written".into())
    }

    /// Commits by the handle.
    pub(super) async fn commit(&mut self, carried: &Carried) -> Result<Committed, BoxError> {
        commit::<S>(&mut self.committer, carried).await
    }

    /// Rolls back by the handle.
    pub(super) async fn abort(&mut self, carried: &Carried) -> Result<(), BoxError> {
        let handle = decode_handle(&carried.bytes)?;
        limited("abort", self.committer.abort(CheckpointId(carried.checkpoint), &handle)).await
    }
}

async fn commit<S: Sink>(committer: &mut S::Committer, carried: &Carried) -> Result<Committed, BoxError> {
    let handle = decode_handle(&carried.bytes)?;
    let committing = async {
        loop {
            match committer.commit(CheckpointId(carried.checkpoint), &handle).await {
                Ok(outcome) => return Ok(outcome),
                Err(CommitError::Retry(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
                Err(CommitError::Lost(cause)) => return Err(cause),
            }
        }
    };
    limited("commit", committing).await
}
