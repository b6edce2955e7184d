//! A job of one sink, driven by hand as the engine drives it.

use std::time::Duration;

use flow_runtime::{
    checkpoint::CheckpointId,
    error::BoxError,
    sink::{
        CommitError, Committed, Recovered, Sink, SinkCommitter, SinkContext, SinkWriter, Write,
        decode_handle, encode_handle,
    },
};

pub(crate) struct Job<S: Sink> {
    pub(crate) sink: S,
    subtasks: Vec<Subtask<S>>,
}

pub(crate) struct Subtask<S: Sink> {
    pub(crate) cx: SinkContext,
    pub(crate) sink_buffer: S::Buffer,
    pub(crate) writer: S::Writer,
    pub(crate) committer: S::Committer,
}

/// How a job starts.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub(crate) attempt: u64,
    pub(crate) parallelism: usize,
    pub(crate) restored: Option<u64>,
}

pub(crate) const FIRST: Start = Start { attempt: 1, parallelism: 1, restored: None };

pub(crate) fn from(restored: u64, attempt: u64) -> Start {
    Start { attempt, restored: Some(restored), ..FIRST }
}

/// A handle as the checkpoint carries it: encoded.
pub(crate) struct Carried {
    pub(crate) subtask: usize,
    pub(crate) checkpoint: u64,
    pub(crate) handle: Vec<u8>,
}

pub(crate) fn context(name: &str, start: Start, subtask: usize) -> SinkContext {
    let mut cx = SinkContext::new(name, "counts.sink");
    cx.subtask = subtask;
    cx.parallelism = start.parallelism;
    cx.attempt = start.attempt;
    cx.restored = start.restored.map(CheckpointId);
    cx
}

pub(crate) async fn recover<S: Sink>(
    sink: &S,
    name: &str,
    start: Start,
    carried: &[Carried],
) -> Result<(), BoxError> {
    let handles = carried
        .iter()
        .map(|c| Recovered {
            subtask: c.subtask,
            checkpoint: CheckpointId(c.checkpoint),
            handle: decode_handle(&c.handle).unwrap(),
        })
        .collect();
    sink.recover(&context(name, start, 0), handles).await
}

impl<S: Sink> Job<S> {
    pub(crate) async fn start(
        sink: S,
        name: &str,
        start: Start,
        carried: &[Carried],
    ) -> Result<Self, BoxError> {
        recover(&sink, name, start, carried).await?;
        let mut subtasks = Vec::new();
        for subtask in 0..start.parallelism {
            let cx = context(name, start, subtask);
            let sink_buffer = sink.buffer(&cx);
            let (writer, committer) = sink.open(&cx).await?;
            subtasks.push(Subtask { cx, sink_buffer, writer, committer });
        }
        Ok(Job { sink, subtasks })
    }

    pub(crate) fn subtask(&mut self, index: usize) -> &mut Subtask<S> {
        &mut self.subtasks[index]
    }

    pub(crate) fn into_subtasks(self) -> Vec<Subtask<S>> {
        self.subtasks
    }

    pub(crate) async fn write<T>(&mut self, records: impl IntoIterator<Item = T>)
    where
        S::Buffer: Write<T>,
    {
        self.subtasks[0].write(records).await.unwrap();
    }

    pub(crate) async fn pre_commit(&mut self, checkpoint: u64) -> Option<S::Handle> {
        self.subtasks[0].pre_commit(checkpoint).await
    }

    pub(crate) async fn commit(
        &mut self,
        checkpoint: u64,
        handle: &S::Handle,
    ) -> Result<Committed, CommitError> {
        self.subtasks[0].commit(checkpoint, handle).await
    }

    /// A whole epoch.
    pub(crate) async fn epoch<T>(&mut self, checkpoint: u64, records: impl IntoIterator<Item = T>)
    where
        S::Buffer: Write<T>,
    {
        self.write(records).await;
        let handle = self.pre_commit(checkpoint).await.unwrap();
        assert_eq!(self.commit(checkpoint, &handle).await.unwrap(), Committed::Now);
    }
}

impl<S: Sink> Subtask<S> {
    pub(crate) async fn write<T>(&mut self, records: impl IntoIterator<Item = T>) -> Result<(), BoxError>
    where
        S::Buffer: Write<T>,
    {
        use flow_runtime::sink::SinkBuffer;
        for record in records {
            self.sink_buffer.write(record)?;
            if self.sink_buffer.is_full() {
                self.writer.write(&mut self.sink_buffer).await?;
                self.sink_buffer.clear();
            }
        }
        self.writer.write(&mut self.sink_buffer).await?;
        self.sink_buffer.clear();
        Ok(())
    }

    pub(crate) async fn pre_commit(&mut self, checkpoint: u64) -> Option<S::Handle> {
        self.writer.pre_commit(CheckpointId(checkpoint)).await.unwrap()
    }

    pub(crate) async fn commit(
        &mut self,
        checkpoint: u64,
        handle: &S::Handle,
    ) -> Result<Committed, CommitError> {
        let mut pause = Duration::from_millis(5);
        loop {
            match self.committer.commit(CheckpointId(checkpoint), handle).await {
                Err(CommitError::Retry(_)) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(200));
                }
                outcome => return outcome,
            }
        }
    }

    pub(crate) fn carried(&self, checkpoint: u64, handle: &S::Handle) -> Carried {
        let handle = encode_handle(handle).unwrap();
        Carried { subtask: self.cx.subtask, checkpoint, handle }
    }
}

/// Why a commit is not to be tried again.
pub(crate) fn lost(outcome: Result<Committed, CommitError>) -> String {
    match outcome {
        Err(CommitError::Lost(why)) => why.to_string(),
        other => panic!("not lost: {other:?}"),
    }
}
