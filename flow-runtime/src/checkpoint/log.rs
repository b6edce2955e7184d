//! The files of one subtask's state: a base that held all of it once, and what has changed since.
//!
//! A checkpoint adds to the log what has changed and names all files of it. Whether the checkpoint completes does not
//! matter to the log: what could not be written is written with the next. Behind the back of the checkpoints the files
//! are merged into a new base, when there is more to read than a new base would hold.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel},
        oneshot,
    },
    task::JoinHandle,
};

use super::{CheckpointError, CheckpointId, Compression, Merge, PartFile, Store};
use crate::{
    failpoint::{Point, reach},
    worker::Tries,
};

/// As many files are read at most at a restore.
const MAX_FILES: usize = 32;
/// From as many segments that could not be written on, they are merged: the memory they take is then bounded by the
/// keys that have changed, however long the store is away.
const MAX_PENDING: usize = 8;

/// A segment in the making.
pub(crate) struct NewSegment {
    /// Whether it is all of the state.
    pub(crate) whole: bool,
    pub(crate) encoded: JoinHandle<Result<Bytes, CheckpointError>>,
}

type Reply = oneshot::Sender<Result<Vec<PartFile>, CheckpointError>>;

enum Order {
    Append { checkpoint: CheckpointId, segment: Option<NewSegment>, tries: Tries, reply: Reply },
    Compacted { generation: u64, merged: usize, result: Result<PartFile, CheckpointError> },
}

/// The operator's end of a log; the log itself is a task that lives as long as this.
pub(crate) struct StateLog {
    orders: UnboundedSender<Order>,
    broken: Arc<AtomicBool>,
}

impl StateLog {
    /// Starts a log whose first segments lie in `files`. `name` is for the names of files.
    pub(crate) fn start(
        tokio: &Handle,
        (store, compression): (Store, Compression),
        name: String,
        merge: Merge,
        files: Vec<PartFile>,
    ) -> Self {
        let (orders, inbox) = unbounded_channel();
        let broken = Arc::new(AtomicBool::new(false));
        let log = Log {
            store,
            compression,
            name,
            merge,
            files,
            pending: Vec::new(),
            held: None,
            last: CheckpointId(0),
            generation: 0,
            compacting: false,
            broken: Arc::clone(&broken),
            orders: orders.downgrade(),
        };
        tokio.spawn(log.run(inbox));
        StateLog { orders, broken }
    }

    /// Whether changes were lost, so that only a segment of all of the state helps.
    pub(crate) fn broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Adds what has changed, if anything has, and returns all files that the state of this checkpoint is made of. The
    /// change is kept and the order of checkpoints as well, whether the future is waited for or not.
    pub(crate) fn append(
        &self,
        checkpoint: CheckpointId,
        segment: Option<NewSegment>,
        tries: Tries,
    ) -> impl Future<Output = Result<Vec<PartFile>, CheckpointError>> + use<> {
        let (reply, answer) = oneshot::channel();
        let sent = self.orders.send(Order::Append { checkpoint, segment, tries, reply });
        async move {
            let gone = || CheckpointError::Encode { cause: "the job ended meanwhile".to_owned() };
            sent.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        }
    }
}

struct Log {
    store: Store,
    compression: Compression,
    name: String,
    merge: Merge,
    /// The base and what has changed since, as far as it is written.
    files: Vec<PartFile>,
    /// What is still to be written, and whether it is a base.
    pending: Vec<(bool, Bytes)>,
    /// The base, when compaction wrote it.
    held: Option<String>,
    /// The last checkpoint that was told the files.
    last: CheckpointId,
    /// Counts bases: a compaction of files before the current base is of no use.
    generation: u64,
    compacting: bool,
    broken: Arc<AtomicBool>,
    orders: WeakUnboundedSender<Order>,
}

impl Log {
    async fn run(mut self, mut inbox: UnboundedReceiver<Order>) {
        while let Some(order) = inbox.recv().await {
            match order {
                Order::Append { checkpoint, segment, tries, mut reply } => {
                    let result = match self.take(segment).await {
                        Ok(()) => tokio::select! {
                            result = self.write(checkpoint, tries) => result,
                            // Given up, perhaps because a write hangs: the next checkpoint must not wait for it. What
                            // is not written yet goes with that one.
                            () = reply.closed() => continue,
                        },
                        Err(error) => Err(error),
                    };
                    let _ = reply.send(result);
                    self.compact();
                }
                Order::Compacted { generation, merged, result } => {
                    self.compacting = false;
                    match result {
                        Ok(file) if generation == self.generation => self.replace(merged, file, true),
                        Ok(file) => self.store.release(&file.path, CheckpointId(0)),
                        Err(error) => {
                            tracing::warn!("the files of `{}` could not be merged: {error}", self.name)
                        }
                    }
                }
            }
        }
    }

    /// Keeps what has changed, to be written.
    async fn take(&mut self, segment: Option<NewSegment>) -> Result<(), CheckpointError> {
        if let Some(NewSegment { whole, encoded }) = segment {
            let encoded = match encoded.await {
                Ok(encoded) => encoded,
                Err(panic) => Err(CheckpointError::Encode { cause: panic.to_string() }),
            };
            let bytes = encoded.inspect_err(|_| self.broken.store(true, Ordering::Relaxed))?;
            reach(Point::SnapshotEncoded);
            if whole {
                self.pending.clear();
                self.broken.store(false, Ordering::Relaxed);
            }
            self.pending.push((whole, bytes));
        }
        if self.broken.load(Ordering::Relaxed) {
            let cause = "changes before it could not be encoded".to_owned();
            return Err(CheckpointError::Encode { cause });
        }
        Ok(())
    }

    /// Writes what is still to be written, and returns all files. May be dropped at any time: a file that was written and
    /// not noted is written again under another name, and nobody names the first.
    async fn write(
        &mut self,
        checkpoint: CheckpointId,
        tries: Tries,
    ) -> Result<Vec<PartFile>, CheckpointError> {
        if self.pending.len() >= MAX_PENDING {
            self.merge_pending().await?;
        }
        while let Some((whole, bytes)) = self.pending.first() {
            let kind = if *whole { "state" } else { "changes" };
            let name = format!("{}-{kind}", self.name);
            let put = || self.store.put_compressed(checkpoint, &name, bytes.clone(), self.compression);
            let file = tries.run(put).await?;
            reach(Point::StateWritten);
            if *whole {
                self.generation += 1;
                self.replace(self.files.len(), file, false);
            } else {
                self.files.push(file);
            }
            self.pending.remove(0);
        }
        self.last = checkpoint;
        Ok(self.files.clone())
    }

    /// Puts a base in the place of the first files.
    fn replace(&mut self, merged: usize, base: PartFile, held: bool) {
        let now = held.then(|| base.path.clone());
        if let Some(before) = std::mem::replace(&mut self.held, now) {
            self.store.release(&before, self.last);
        }
        self.files.splice(..merged, [base]);
    }

    async fn merge_pending(&mut self) -> Result<(), CheckpointError> {
        let whole = self.pending.first().is_some_and(|(whole, _)| *whole);
        let segments = self.pending.iter().map(|(_, bytes)| bytes.clone()).collect();
        let merged = merge(self.merge, segments, whole).await?;
        self.pending = vec![(whole, merged)];
        Ok(())
    }

    /// Begins to merge the files when they are longer than what a restore needs, so that all in all no more is written
    /// for it than for the changes.
    fn compact(&mut self) {
        let [base, changes @ ..] = &self.files[..] else { return };
        let changed = changes.iter().map(|file| file.bytes).sum::<u64>();
        if self.compacting || changes.is_empty() || (changed <= base.bytes && self.files.len() <= MAX_FILES) {
            return;
        }
        let Some(orders) = self.orders.upgrade() else { return };
        self.compacting = true;
        let (store, compression, files, with) =
            (self.store.clone(), self.compression, self.files.clone(), self.merge);
        let (checkpoint, name, generation) = (self.last, format!("{}-state", self.name), self.generation);
        tokio::spawn(async move {
            let merged = files.len();
            let result = async {
                let mut segments = Vec::with_capacity(merged);
                for file in &files {
                    segments.push(store.get_part(file).await?);
                }
                let base = merge(with, segments, true).await?;
                store.put_held(checkpoint, &name, base, compression).await
            };
            let result = result.await;
            let _ = orders.send(Order::Compacted { generation, merged, result });
        });
    }
}

async fn merge(with: Merge, segments: Vec<Bytes>, whole: bool) -> Result<Bytes, CheckpointError> {
    match tokio::task::spawn_blocking(move || with(&segments, whole)).await {
        Ok(merged) => merged,
        Err(panic) => Err(CheckpointError::Encode { cause: panic.to_string() }),
    }
}
