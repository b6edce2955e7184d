//! Between a chain and the futures that run for it on tokio.

use std::{
    cell::OnceCell,
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::Poll,
    time::Duration,
};

use crate::{
    chain::Environment,
    error::BoxError,
    worker::{AbortOnDrop, Alarm, in_user_code},
};

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Outcome<R> {
    Answer(R),
    Failed(BoxError),
    TimedOut,
    Panicked(String),
}

/// The worker's end.
pub(crate) struct Link<R> {
    environment: Arc<Environment>,
    outcomes: mpsc::Receiver<(u64, Outcome<R>)>,
    sender: mpsc::Sender<(u64, Outcome<R>)>,
    bell: Rc<OnceCell<Arc<Bell>>>,
}

/// Wakes the chain, once for all that has come since it looked last: a wake-up costs a system call.
pub(super) struct Bell {
    rung: AtomicBool,
    alarm: Alarm,
}

impl Bell {
    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.alarm.ring();
        }
    }
}

impl<R: Send + 'static> Link<R> {
    pub(crate) fn new(environment: Arc<Environment>) -> Self {
        let (sender, outcomes) = mpsc::channel();
        Link { environment, outcomes, sender, bell: Rc::default() }
    }

    /// `alarm` wakes the chain.
    pub(super) fn wake_with(&self, alarm: Alarm) {
        let _ = self.bell.set(Arc::new(Bell { rung: AtomicBool::new(false), alarm }));
    }

    /// What has ended since it was asked last.
    pub(super) fn take(&self) -> impl Iterator<Item = (u64, Outcome<R>)> + use<'_, R> {
        // Before it is looked: what comes while it is rings again.
        if let Some(bell) = self.bell.get() {
            bell.rung.store(false, Ordering::SeqCst);
        }
        self.outcomes.try_iter()
    }

    /// Says how many more records are under way, or fewer.
    pub(super) fn under_way(&self, more: i64) {
        self.environment.control.under_way(more);
    }

    /// Runs a future on tokio, after a delay and for no longer than the timeout. It ends when the task is dropped.
    pub(super) fn spawn(
        &self,
        number: u64,
        delay: Duration,
        timeout: Duration,
        future: impl Future<Output = Result<R, BoxError>> + Send + 'static,
    ) -> AbortOnDrop<()> {
        let (clock, sender, bell) =
            (self.environment.clock.clone(), self.sender.clone(), self.bell.get().cloned());
        AbortOnDrop(self.environment.tokio.spawn(async move {
            let waited = if delay.is_zero() { None } else { clock.alarm(delay).await };
            let (mut future, mut limit) = (pin!(future), pin!(clock.alarm(timeout)));
            let mut late = None;
            let mut first = Some(waited);
            let outcome = poll_fn(|cx| match in_user_code(|| future.as_mut().poll(cx)) {
                Ok(Poll::Ready(Ok(answer))) => Poll::Ready(Outcome::Answer(answer)),
                Ok(Poll::Ready(Err(error))) => Poll::Ready(Outcome::Failed(error)),
                Ok(Poll::Pending) => {
                    let timed_out = limit.as_mut().poll(cx).map(|alarm| late = Some(alarm));
                    // The attempt has begun.
                    first = None;
                    timed_out.map(|()| Outcome::TimedOut)
                }
                Err(message) => Poll::Ready(Outcome::Panicked(message)),
            });
            let outcome = outcome.await;
            // The operator is gone only when the attempt ends.
            let _ = sender.send((number, outcome));
            if let Some(bell) = bell {
                bell.ring();
            }
            // Only now has come what the clock has made due.
            drop((first, late));
        }))
    }
}
