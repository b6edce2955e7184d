//! The tasks of a sink's subtask: one writes and pre-commits, the other commits.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use tokio::sync::{Notify, OnceCell, mpsc, oneshot};

use super::{
    CommitError, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext, SinkWriter, States,
    behind::Behind,
    decode_handle, encode_handle,
    pending::{Carried, Commits},
    port::Barrier,
    unconfirmed::Unconfirmed,
};
use crate::{
    chain::Environment,
    checkpoint::CheckpointId,
    error::{BoxError, Error, Place, panic_message},
    failpoint::{Point, reach},
    worker::{AbortOnDrop, Alarm, Tries},
};

/// What the worker sends.
pub(crate) enum Message<S: Sink> {
    Write(S::Buffer),
    Barrier(CheckpointId, Tries, oneshot::Sender<Barrier>),
}

/// What worker, writer and committer know of each other.
pub(crate) struct Status {
    worker_waits: AtomicBool,
    alarm: Alarm,
    settled_alarm: Alarm,
    /// The newest complete checkpoint.
    completed: AtomicU64,
    /// The newest checkpoint of which everything is committed.
    confirmed: AtomicU64,
    completion: Notify,
    /// The committer has come further.
    progress: Notify,
}

impl Status {
    pub(crate) fn new(alarm: Alarm, settled_alarm: Alarm, last: CheckpointId) -> Self {
        Status {
            worker_waits: AtomicBool::new(false),
            alarm,
            settled_alarm,
            completed: AtomicU64::new(last.0),
            confirmed: AtomicU64::new(last.0),
            completion: Notify::new(),
            progress: Notify::new(),
        }
    }

    /// The worker is about to wait for the writer. Returns false, once, when the writer may have taken a message
    /// since the worker looked.
    pub(crate) fn wait(&self) -> bool {
        self.worker_waits.swap(true, Ordering::SeqCst)
    }

    fn took(&self) {
        if self.worker_waits.swap(false, Ordering::SeqCst) {
            self.alarm.ring();
        }
    }

    pub(crate) fn completed(&self, checkpoint: CheckpointId) {
        self.completed.fetch_max(checkpoint.0, Ordering::SeqCst);
        self.completion.notify_one();
    }

    /// The committer has committed all up to here.
    fn confirm(&self, checkpoint: CheckpointId) {
        self.confirmed.fetch_max(checkpoint.0, Ordering::SeqCst);
        self.progress.notify_one();
    }

    /// Waits until the committer has not fallen too far behind.
    async fn caught_up(&self, behind: &mut Behind, cx: &SinkContext) {
        let mut told = false;
        loop {
            let completed = CheckpointId(self.completed.load(Ordering::SeqCst));
            let confirmed = CheckpointId(self.confirmed.load(Ordering::SeqCst));
            if !behind.too_far(completed, confirmed) {
                return;
            }
            if !told {
                told = true;
                tracing::warn!(
                    operator = cx.operator,
                    subtask = cx.subtask,
                    "too many transactions wait for their commit, no further records are taken"
                );
            }
            self.progress.notified().await;
        }
    }

    pub(crate) fn settled(&self, checkpoint: CheckpointId) -> bool {
        self.confirmed.load(Ordering::SeqCst) >= checkpoint.0
    }
}

/// The writer task, before it runs.
pub(crate) struct SinkTask<S: Sink> {
    pub(crate) sink: Arc<S>,
    pub(crate) cx: SinkContext,
    pub(crate) operator: usize,
    pub(crate) environment: Arc<Environment>,
    pub(crate) inbox: mpsc::Receiver<Message<S>>,
    pub(crate) empty: mpsc::Sender<S::Buffer>,
    pub(crate) status: Arc<Status>,
}

impl<S: Sink> SinkTask<S> {
    pub(crate) async fn run(self) {
        let control = Arc::clone(&self.environment.control);
        let place = place(&self.cx);
        let failure = match AssertUnwindSafe(self.write()).catch_unwind().await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(payload) => Error::Panic { place, message: panic_message(&*payload) },
        };
        control.fail(failure);
    }

    fn failed(&self, cause: BoxError) -> Error {
        Error::Sink { place: place(&self.cx), cause }
    }

    async fn write(mut self) -> Result<(), Error> {
        self.recover().await?;
        let (mut writer, committer) = self.sink.open(&self.cx).await.map_err(|e| self.failed(e))?;
        self.cx.states.opened();
        let (prepare, prepared) = mpsc::unbounded_channel();
        let (status, cx, control) =
            (Arc::clone(&self.status), self.cx.clone(), Arc::clone(&self.environment.control));
        let committing = tokio::spawn(async move {
            let committing = AssertUnwindSafe(commit::<S>(committer, prepared, &status, &cx));
            control.fail(match committing.catch_unwind().await {
                Ok(cause) => Error::Sink { place: place(&cx), cause },
                Err(payload) => Error::Panic { place: place(&cx), message: panic_message(&*payload) },
            });
        });
        // Aborts the committer with this task.
        let _committing = AbortOnDrop(committing);
        let (mut carried, mut behind) = (Carried::<Arc<Unconfirmed>>::new(), Behind::default());
        while let Some(message) = self.inbox.recv().await {
            self.status.took();
            match message {
                Message::Write(mut buffer) => {
                    self.status.caught_up(&mut behind, &self.cx).await;
                    writer.write(&mut buffer).await.map_err(|e| self.failed(e))?;
                    buffer.clear();
                    let _ = self.empty.try_send(buffer);
                }
                Message::Barrier(checkpoint, tries, reply) => {
                    reach(Point::BeforePreCommit);
                    let handle = writer.pre_commit(checkpoint).await.map_err(|e| self.failed(e))?;
                    reach(Point::PreCommitted);
                    let confirmed = CheckpointId(self.status.confirmed.load(Ordering::SeqCst));
                    let entry = match &handle {
                        Some(handle) => {
                            let encoded = encode_handle(handle).map_err(|e| self.failed(e))?;
                            behind.pre_committed(checkpoint, encoded.len());
                            let entry = Unconfirmed::new(checkpoint, &self.cx, self.operator, encoded);
                            Some(Arc::new(entry))
                        }
                        None => None,
                    };
                    // The committer outlives this task's last message.
                    let _ = handle.map(|handle| prepare.send((checkpoint, handle)));
                    let transactions = carried.barrier(checkpoint, entry, confirmed);
                    let states = self.cx.states.barrier(checkpoint, tries);
                    // Unheard where the checkpoint has failed meanwhile.
                    let _ = reply.send(Barrier { transactions, states });
                }
            }
        }
        // The worker is done; the attempt ends when everything is settled, and this task with it.
        drop(prepare);
        std::future::pending().await
    }

    /// Settles, once for all subtasks, what the restored checkpoint carried.
    async fn recover(&self) -> Result<(), Error> {
        let recovered = self.environment.shared.get("recovered", self.operator, OnceCell::<()>::new);
        let settle = async || -> Result<(), Error> {
            let mut handles = Vec::new();
            if let Some(restored) = &self.environment.restored {
                for (subtask, checkpoint, bytes) in restored.handles(&self.cx.operator) {
                    let handle = decode_handle::<S::Handle>(&bytes).map_err(|e| {
                        self.failed(
                            format!("the handle of checkpoint {checkpoint} cannot be read: {e}").into(),
                        )
                    })?;
                    handles.push(Recovered { subtask, checkpoint, handle });
                }
            }
            let cx = SinkContext { subtask: 0, states: States::Refused, ..self.cx.clone() };
            reach(Point::BeforeRecover);
            self.sink.recover(&cx, handles).await.map_err(|e| self.failed(e))?;
            reach(Point::Recovered);
            Ok(())
        };
        recovered.get_or_try_init(settle).await?;
        Ok(())
    }
}

fn place(cx: &SinkContext) -> Place {
    Place { operator: cx.operator.clone(), subtask: cx.subtask, record: None }
}

/// The committer task: commits, in order, what complete checkpoints carry. Returns why it cannot go on.
async fn commit<S: Sink>(
    mut committer: S::Committer,
    mut prepared: mpsc::UnboundedReceiver<(CheckpointId, S::Handle)>,
    status: &Status,
    cx: &SinkContext,
) -> BoxError {
    let mut commits = Commits::new();
    loop {
        status.completion.notified().await;
        let complete = CheckpointId(status.completed.load(Ordering::SeqCst));
        while let Ok((checkpoint, handle)) = prepared.try_recv() {
            commits.pre_committed(checkpoint, handle);
        }
        while let Some((checkpoint, handle)) = commits.next(complete) {
            if let Err(cause) = commit_one(&mut committer, checkpoint, handle, cx).await {
                return cause;
            }
            commits.committed();
            status.confirm(checkpoint);
        }
        // What is left belongs to later checkpoints, so this one is settled.
        status.confirm(complete);
        status.settled_alarm.ring();
    }
}

async fn commit_one<C: SinkCommitter>(
    committer: &mut C,
    checkpoint: CheckpointId,
    handle: &C::Handle,
    cx: &SinkContext,
) -> Result<(), BoxError> {
    let mut pause = Duration::from_millis(50);
    loop {
        reach(Point::BeforeCommit);
        match committer.commit(checkpoint, handle).await {
            Ok(outcome) => {
                reach(Point::Committed);
                tracing::debug!(operator = cx.operator, subtask = cx.subtask, %checkpoint, "{outcome}");
                return Ok(());
            }
            // As long as the server is away nothing is lost: the handle is in the checkpoint, and later ones carry it.
            Err(CommitError::Retry(cause)) => {
                tracing::warn!(
                    operator = cx.operator,
                    subtask = cx.subtask,
                    %checkpoint,
                    "could not commit, trying again in {pause:?}: {cause}"
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(5));
            }
            Err(CommitError::Lost(cause)) => return Err(cause),
        }
    }
}
