//! The worker's end of a sink: buffers that it fills, and barriers that it sends after them.

use std::{
    cell::{RefCell, RefMut},
    collections::VecDeque,
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::Arc,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    Desk, Sink, SinkBuffer, SinkContext, Write,
    desk::SinkDesk,
    task::{Message, SinkTask, Status},
    unconfirmed::Unconfirmed,
};
use crate::{
    chain::{Environment, OperatorWrite},
    checkpoint::CheckpointId,
    error::BoxError,
    worker::{Alarm, Tries},
};

/// Buffers that may lie between the worker and the writer task.
const DEPTH: usize = 4;

/// A sink in the chain's loop, borrowed for each batch.
pub struct SinkHandle<S: Sink>(Rc<RefCell<Feeder<S>>>);

impl<S: Sink> Clone for SinkHandle<S> {
    fn clone(&self) -> Self {
        SinkHandle(Rc::clone(&self.0))
    }
}

/// The buffer being filled, and the way of the full ones.
struct Feeder<S: Sink> {
    /// Away while a loop fills it.
    buffer: Option<S::Buffer>,
    /// Sealed, but not yet taken by the writer task.
    sealed: VecDeque<Message<S>>,
    lines: Option<Lines<S>>,
    sink: Arc<S>,
    cx: SinkContext,
    /// What the task needs, until the operator is built and its alarm known.
    dormant: Option<(usize, Arc<Environment>)>,
}

/// The channels to and from the writer task.
struct Lines<S: Sink> {
    messages: mpsc::Sender<Message<S>>,
    empties: mpsc::Receiver<S::Buffer>,
    status: Arc<Status>,
}

impl<S: Sink> SinkHandle<S> {
    pub(crate) fn open(
        sink: S,
        cx: SinkContext,
        operator: usize,
        environment: &Arc<Environment>,
        active: bool,
    ) -> Self {
        let sink = Arc::new(sink);
        let buffer = sink.buffer(&cx);
        let dormant = active.then(|| (operator, Arc::clone(environment)));
        SinkHandle(Rc::new(RefCell::new(Feeder {
            buffer: Some(buffer),
            sealed: VecDeque::new(),
            lines: None,
            sink,
            cx,
            dormant,
        })))
    }

    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> Filling<'_, S> {
        let mut feeder = self.0.borrow_mut();
        Filling { buffer: feeder.buffer.take(), feeder }
    }

    pub(crate) fn port(&self) -> Rc<dyn SinkPort> {
        Rc::new(self.clone())
    }
}

/// The filling of a sink's buffer, for the time of one batch.
///
/// The buffer lies on the loop's stack meanwhile, and leaves it by value only: what it counts is then kept in
/// registers, where counters behind a pointer would be loaded and stored for each record.
pub struct Filling<'a, S: Sink> {
    /// Taken only by the destructor.
    buffer: Option<S::Buffer>,
    feeder: RefMut<'a, Feeder<S>>,
}

impl<S: Sink> Filling<'_, S> {
    /// Adds a record to the buffer. The worker never waits here.
    ///
    /// # Errors
    /// When the record cannot be encoded.
    #[inline(always)]
    pub fn write<T>(&mut self, record: T) -> Result<(), BoxError>
    where
        S::Buffer: Write<T>,
    {
        let Some(buffer) = &mut self.buffer else { return Ok(()) };
        buffer.write(record)?;
        if buffer.is_full() {
            self.buffer = self.buffer.take().map(|full| self.feeder.exchange(full));
        }
        Ok(())
    }
}

impl<S: Sink> Drop for Filling<'_, S> {
    #[inline(always)]
    fn drop(&mut self) {
        self.feeder.buffer = self.buffer.take();
    }
}

impl<S: Sink> Feeder<S> {
    /// An empty buffer for a full one.
    #[inline(never)]
    fn exchange(&mut self, full: S::Buffer) -> S::Buffer {
        self.sealed.push_back(Message::Write(full));
        let empty = self.lines.as_mut().and_then(|lines| lines.empties.try_recv().ok());
        empty.unwrap_or_else(|| self.sink.buffer(&self.cx))
    }

    /// Sends what is in the buffer, though it is not full.
    fn seal(&mut self) {
        if let Some(begun) = self.buffer.take() {
            self.buffer = Some(if begun.is_empty() { begun } else { self.exchange(begun) });
        }
    }

    /// Hands over what the writer task can take.
    fn pump(&mut self) {
        let Some(lines) = &mut self.lines else { return };
        while let Some(message) = self.sealed.pop_front() {
            match lines.messages.try_send(message) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(message)) => {
                    self.sealed.push_front(message);
                    if lines.status.wait() {
                        return;
                    }
                    // The task took something in the meantime.
                }
                // The task has failed, and has said so; the attempt is about to end.
                Err(mpsc::error::TrySendError::Closed(_)) => return,
            }
        }
    }
}

/// What a barrier brings.
pub(crate) type SinkParts = Pin<Box<dyn Future<Output = Barrier> + Send>>;

/// What a checkpoint has to hold of a sink's subtask.
#[derive(Default)]
pub(crate) struct Barrier {
    pub(crate) transactions: Vec<Arc<Unconfirmed>>,
    pub(crate) states: Vec<OperatorWrite>,
}

/// A sink as the engine sees it, whatever its types.
pub(crate) trait SinkPort {
    /// Starts the tasks; `alarm` wakes the chain's operator, `settled` the committer's.
    fn start(&self, alarm: Alarm, settled: Alarm);

    /// Hands over full buffers, and says whether the chain may go on.
    fn ready(&self) -> bool;

    /// Hands over the buffer even if it is not full: the chain has nothing to do for now.
    fn flush(&self);

    /// Ends the epoch; the future gives what the checkpoint has to hold.
    fn barrier(&self, checkpoint: CheckpointId, tries: Tries) -> SinkParts;

    /// The checkpoint is complete: what it carried may be committed.
    fn completed(&self, checkpoint: CheckpointId);

    /// Whether everything that may be committed is.
    fn settled(&self, checkpoint: CheckpointId) -> bool;

    /// The sink for somebody who does not run it.
    fn desk(&self) -> Box<dyn Desk>;
}

impl<S: Sink> SinkPort for SinkHandle<S> {
    fn start(&self, alarm: Alarm, settled: Alarm) {
        let mut feeder = self.0.borrow_mut();
        let Some((operator, environment)) = feeder.dormant.take() else { return };
        let (messages, inbox) = mpsc::channel(DEPTH);
        let (empty, empties) = mpsc::channel(DEPTH + 2);
        let status = Arc::new(Status::new(alarm, settled, environment.last));
        feeder.lines = Some(Lines { messages, empties, status: Arc::clone(&status) });
        let task = SinkTask {
            sink: Arc::clone(&feeder.sink),
            cx: feeder.cx.clone(),
            operator,
            environment: Arc::clone(&environment),
            inbox,
            empty,
            status,
        };
        environment.tokio.spawn(task.run());
    }

    fn ready(&self) -> bool {
        let mut feeder = self.0.borrow_mut();
        feeder.pump();
        feeder.sealed.is_empty()
    }

    fn flush(&self) {
        let mut feeder = self.0.borrow_mut();
        feeder.seal();
        feeder.pump();
    }

    fn barrier(&self, checkpoint: CheckpointId, tries: Tries) -> SinkParts {
        let (reply, parts) = oneshot::channel();
        let mut feeder = self.0.borrow_mut();
        feeder.seal();
        feeder.sealed.push_back(Message::Barrier(checkpoint, tries, reply));
        feeder.pump();
        Box::pin(async move {
            match parts.await {
                Ok(parts) => parts,
                // The task failed, and has reported why: this attempt is over.
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn completed(&self, checkpoint: CheckpointId) {
        if let Some(lines) = &self.0.borrow().lines {
            lines.status.completed(checkpoint);
        }
    }

    fn settled(&self, checkpoint: CheckpointId) -> bool {
        match &self.0.borrow().lines {
            Some(lines) => lines.status.settled(checkpoint),
            None => true,
        }
    }

    fn desk(&self) -> Box<dyn Desk> {
        let feeder = self.0.borrow();
        Box::new(SinkDesk { sink: Arc::clone(&feeder.sink), cx: feeder.cx.clone() })
    }
}
