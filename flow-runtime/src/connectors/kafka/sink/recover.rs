//! What happens when a job starts: fence, look at the markers, write what is pending, take over.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::{
    Staged,
    check::Limits,
    committer::apply,
    marker::{Mark, Owner},
    producer::{Class, Fault},
    session::{Session, read_mark},
    setup::Setup,
};
use crate::{checkpoint::CheckpointId, sink::Recovered};

/// How long it waits for brokers that restart, or for another attempt that is still being fenced.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many producers are opened at the same time.
const AT_ONCE: usize = 16;

pub(super) struct Recovering<'a> {
    pub(super) setup: &'a Arc<Setup>,
    pub(super) limits: &'a Limits,
    pub(super) owner: &'a Owner,
    pub(super) parallelism: usize,
    pub(super) restored: Option<CheckpointId>,
    pub(super) handles: &'a [Recovered<Staged>],
}

impl Recovering<'_> {
    /// Either all subtasks are this attempt's, and what the checkpoint carried is written, or the job does not start.
    /// It can be killed anywhere and begun again. Blocks.
    pub(super) fn run(&self) -> Result<(), Fault> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(50);
        loop {
            // Each time from the beginning: whatever failed, the markers tell how far it came.
            match self.try_run() {
                Err(fault) if fault.class != Class::Permanent && Instant::now() < deadline => {
                    tracing::warn!(sink = self.owner.sink, "cannot take over yet: {}", fault.text);
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
                done => return done,
            }
        }
    }

    fn try_run(&self) -> Result<(), Fault> {
        let mut sessions = self.open_all()?;
        let marks: Vec<_> = sessions.iter().map(|session| session.mark().copied()).collect();
        let settled = self
            .owner
            .settle(&marks, self.restored, self.handles, self.setup.recovery)
            .map_err(Fault::permanent)?;
        // All before anything is written, so that an earlier attempt that is still alive sees that it is over.
        for (session, mark) in sessions.iter_mut().zip(settled) {
            let own = Mark { owner: self.owner.attempt, ..mark };
            if session.mark() != Some(&own) {
                session.write(None, own)?;
            }
        }
        for Recovered { subtask, checkpoint, handle } in self.handles {
            let Some(session) = sessions.get_mut(*subtask) else { continue };
            let committed = apply(session, self.owner, *subtask, *checkpoint, handle)?;
            tracing::info!(
                sink = self.owner.sink, subtask, %checkpoint, records = handle.records(),
                "{committed} what the checkpoint carried"
            );
        }
        Ok(())
    }

    /// Those of the present parallelism, those with handles, and those that had a marker in a wider one.
    fn open_all(&self) -> Result<Vec<Session>, Fault> {
        let with_handles = self.handles.iter().map(|handle| handle.subtask + 1).max().unwrap_or(0);
        let mut known = self.parallelism.max(with_handles);
        while read_mark(self.setup, &self.owner.id(known))?.is_some() {
            known += 1;
        }
        let subtasks: Vec<usize> = (0..known).collect();
        let mut sessions = Vec::with_capacity(known);
        for some in subtasks.chunks(AT_ONCE) {
            let opened: Vec<Result<Session, Fault>> = thread::scope(|scope| {
                let open = |subtask: &usize| {
                    let id = self.owner.id(*subtask);
                    scope.spawn(move || Session::open(self.setup, self.limits, &id))
                };
                let opening: Vec<_> = some.iter().map(open).collect();
                let panicked = |_| Err(Fault::transient("the kafka client's thread panicked"));
                opening.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
            });
            for session in opened {
                sessions.push(session?);
            }
        }
        Ok(sessions)
    }
}
