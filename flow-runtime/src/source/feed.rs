//! The hand-over from a reader to the worker: a task with a bounded channel, or a reader called in place.

use std::{
    collections::BTreeSet,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};

use super::{Fetched, Progress, Source, SourceContext, SourceReader, splits::Assigner};
use crate::{
    checkpoint::SplitState,
    error::{BoxError, panic_message},
    worker::{AbortOnDrop, Alarm, in_user_code},
};

/// Batches that may lie between the reader and the worker.
const DEPTH: usize = 4;

type FetchedOf<S> = Fetched<<S as Source>::Batch, <S as Source>::Split>;

/// What comes from the task.
enum Delivery<S: Source> {
    /// The subtask has these splits now, at these positions.
    Assigned(Vec<S::Split>),
    /// Records.
    Batch(FetchedOf<S>, Progress),
    /// The reader itself, to be called in place until it has to wait; then it goes back.
    Reader(S::Reader, oneshot::Sender<S::Reader>),
    /// The end, an unhappy one.
    Failed(BoxError),
}

/// What the worker finds when it looks.
pub(crate) enum Supply<S: Source> {
    Assigned(Vec<S::Split>),
    Batch(FetchedOf<S>, Progress),
    /// Nothing now; the worker is woken when there is.
    Nothing,
}

/// The worker's end.
pub(crate) struct Feed<S: Source> {
    deliveries: mpsc::Receiver<Delivery<S>>,
    used: mpsc::Sender<FetchedOf<S>>,
    bell: Arc<Bell>,
    task: JoinHandle<()>,
    tokio: tokio::runtime::Handle,
    inline: Option<Inline<S>>,
    /// The splits that wait for others.
    paused: watch::Sender<BTreeSet<String>>,
}

/// A reader that is called in place, and its one batch.
struct Inline<S: Source> {
    reader: S::Reader,
    spare: Option<FetchedOf<S>>,
    back: oneshot::Sender<S::Reader>,
}

/// Wakes the worker, but only when it waits: a wake-up costs a system call.
struct Bell {
    waiting: AtomicBool,
    alarm: Alarm,
}

impl Bell {
    fn ring(&self) {
        if self.waiting.swap(false, Ordering::SeqCst) {
            self.alarm.ring();
        }
    }
}

impl<S: Source> Feed<S> {
    pub(crate) fn start(
        source: Arc<S>,
        cx: SourceContext,
        assigner: Arc<Assigner<S::Split>>,
        restored: Option<Vec<SplitState>>,
        alarm: Alarm,
        tokio: &tokio::runtime::Handle,
    ) -> Self {
        let (deliver, deliveries) = mpsc::channel(DEPTH);
        let (used, reuse) = mpsc::channel(DEPTH + 2);
        let bell = Arc::new(Bell { waiting: AtomicBool::new(true), alarm });
        let ringing = Arc::clone(&bell);
        let (paused, pauses) = watch::channel(BTreeSet::new());
        let task = tokio.spawn(async move {
            let reading = read(source, cx, assigner, restored, reuse, pauses, &deliver, &ringing);
            let cause = match AssertUnwindSafe(reading).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(cause)) => cause,
                Err(payload) => panicked(&panic_message(&*payload)),
            };
            let _ = deliver.send(Delivery::Failed(cause)).await;
            ringing.ring();
        });
        Feed { deliveries, used, bell, task, tokio: tokio.clone(), inline: None, paused }
    }

    /// Looks for the next batch, without waiting.
    pub(crate) fn poll(&mut self) -> Result<Supply<S>, BoxError> {
        loop {
            match self.deliveries.try_recv() {
                Ok(Delivery::Assigned(splits)) => return Ok(Supply::Assigned(splits)),
                Ok(Delivery::Batch(fetched, progress)) => return Ok(Supply::Batch(fetched, progress)),
                Ok(Delivery::Reader(reader, back)) => {
                    self.inline = Some(Inline { reader, spare: None, back });
                }
                Ok(Delivery::Failed(cause)) => return Err(cause),
                Err(mpsc::error::TryRecvError::Empty) => {
                    if let Some(mut inline) = self.inline.take() {
                        if let Some((fetched, progress)) = inline.fetch(&self.tokio)? {
                            self.inline = Some(inline);
                            return Ok(Supply::Batch(fetched, progress));
                        }
                        // A worker does not wait, but a task may.
                        let _ = inline.back.send(inline.reader);
                    }
                    if self.bell.waiting.swap(true, Ordering::SeqCst) {
                        return Ok(Supply::Nothing);
                    }
                    // Once more: a delivery may have come before the bell was armed.
                }
                Err(mpsc::error::TryRecvError::Disconnected) => return Err("its reader is gone".into()),
            }
        }
    }

    /// These splits are not to be read for now.
    pub(crate) fn pause(&mut self, splits: BTreeSet<String>) -> Result<(), BoxError> {
        if let Some(inline) = &mut self.inline {
            inline.reader.pause(&splits)?;
        }
        self.paused.send_replace(splits);
        Ok(())
    }

    /// Gives a batch back for the next records.
    pub(crate) fn give_back(&mut self, mut fetched: FetchedOf<S>) {
        fetched.advanced.clear();
        match &mut self.inline {
            Some(inline) => inline.spare = Some(fetched),
            // A full channel means that enough are in use; this one goes.
            None => drop(self.used.try_send(fetched)),
        }
    }
}

impl<S: Source> Drop for Feed<S> {
    fn drop(&mut self) {
        // Cancels whatever the reader waits for.
        self.task.abort();
    }
}

impl<S: Source> Inline<S> {
    /// The next batch, or `None` when the reader would have to wait.
    fn fetch(
        &mut self,
        tokio: &tokio::runtime::Handle,
    ) -> Result<Option<(FetchedOf<S>, Progress)>, BoxError> {
        let Inline { reader, spare, .. } = self;
        let mut fetched =
            spare.take().unwrap_or_else(|| Fetched { batch: reader.batch(), advanced: Vec::new() });
        // Readers may use tokio's clock.
        let _entered = tokio.enter();
        let polled =
            in_user_code(|| pin!(reader.fetch(&mut fetched)).poll(&mut Context::from_waker(Waker::noop())));
        match polled.map_err(|message| panicked(&message))? {
            Poll::Ready(progress) => Ok(Some((fetched, progress?))),
            Poll::Pending => Ok(None),
        }
    }
}

fn panicked(message: &str) -> BoxError {
    format!("its reader panicked: {message}").into()
}

/// The reader's task.
#[allow(clippy::too_many_arguments, reason = "the parts of one feed")]
async fn read<S: Source>(
    source: Arc<S>,
    cx: SourceContext,
    assigner: Arc<Assigner<S::Split>>,
    restored: Option<Vec<SplitState>>,
    mut reuse: mpsc::Receiver<FetchedOf<S>>,
    mut pauses: watch::Receiver<BTreeSet<String>>,
    deliver: &mpsc::Sender<Delivery<S>>,
    bell: &Bell,
) -> Result<(), BoxError> {
    let subtask = cx.subtask;
    let mut hand = assigner.hand(&*source, restored.as_deref(), subtask).await?;
    let send = async |delivery| {
        // The worker is gone only when the attempt ends; this task is then aborted.
        let _ = deliver.send(delivery).await;
        bell.ring();
    };
    send(Delivery::Assigned(hand.splits.clone())).await;
    let mut reader = source.open(cx, hand.splits).await?;
    let looking = source.discovery_interval().filter(|_| subtask == 0);
    let _looking = looking.map(|every| AbortOnDrop(tokio::spawn(look(Arc::clone(&source), assigner, every))));
    if source.inline() {
        let (back, returned) = oneshot::channel();
        send(Delivery::Reader(reader, back)).await;
        match returned.await {
            Ok(waiting) => reader = waiting,
            Err(_) => return Ok(()),
        }
    }
    // Where new splits may come there is no end, only nothing to read for now.
    let (endless, mut idle) = (source.discovery_interval().is_some(), false);
    loop {
        let mut fetched = match reuse.try_recv() {
            Ok(fetched) => fetched,
            Err(_) => Fetched { batch: reader.batch(), advanced: Vec::new() },
        };
        let progress = loop {
            tokio::select! {
                // Nothing more is read of what has to wait.
                biased;
                // The feed lives as long as this task.
                Ok(()) = pauses.changed() => {
                    let paused = pauses.borrow_and_update().clone();
                    reader.pause(&paused)?;
                }
                Some(splits) = hand.later.recv() => {
                    send(Delivery::Assigned(splits.clone())).await;
                    reader.add_splits(splits).await?;
                    idle = false;
                }
                progress = reader.fetch(&mut fetched), if !idle => break progress?,
            }
        };
        let finished = progress == Progress::Finished;
        idle = finished && endless;
        send(Delivery::Batch(fetched, if idle { Progress::More } else { progress })).await;
        if (finished && !endless) || deliver.is_closed() {
            return Ok(());
        }
    }
}

/// Looks for new splits again and again, on a task of its own: a broker that is away must not keep the reader waiting.
async fn look<S: Source>(source: Arc<S>, assigner: Arc<Assigner<S::Split>>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        if let Err(error) = assigner.rediscover(&*source).await {
            tracing::warn!("could not look for new splits, trying again in {every:?}: {error}");
        }
    }
}
