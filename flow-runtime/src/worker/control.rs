//! What tells the workers of an attempt to end an epoch, to stop, or to give up.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::Thread,
};

use tokio::sync::watch;

use super::Alarm;
use crate::{checkpoint::CheckpointId, error::Error};

/// How an attempt ends when nothing fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All sources were read to their end.
    Finished,
    /// The job was asked to stop, at a checkpoint from which it can go on.
    Stopped,
}

/// The last epoch of an attempt, once it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub(crate) checkpoint: CheckpointId,
    pub(crate) ending: Ending,
}

/// Shared by all workers of one attempt.
pub(crate) struct Control {
    /// The newest epoch that sources were asked to end.
    requested: AtomicU64,
    phase: Mutex<Phase>,
    failed: AtomicBool,
    completed: watch::Sender<CheckpointId>,
}

#[derive(Default)]
struct Phase {
    last: Option<Last>,
    error: Option<Error>,
    sources: HashMap<usize, usize>,
    finished: HashSet<(usize, usize)>,
    alarms: Vec<Alarm>,
    workers: Vec<Thread>,
    skipped: BTreeMap<String, Arc<AtomicU64>>,
}

impl Control {
    /// `restored` is the checkpoint before the first epoch.
    pub(crate) fn new(restored: CheckpointId) -> Self {
        Control {
            requested: AtomicU64::new(restored.0),
            phase: Mutex::default(),
            failed: AtomicBool::new(false),
            completed: watch::Sender::new(restored),
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A source's operator, to be woken when there is something to do.
    pub(crate) fn register(&self, alarm: Alarm) {
        self.phase().alarms.push(alarm);
    }

    /// A worker's thread, to be unparked when all must give up.
    pub(crate) fn register_worker(&self) {
        self.phase().workers.push(std::thread::current());
    }

    /// A source has this many subtasks. Every worker says so before any of them runs.
    pub(crate) fn expect_source(&self, operator: usize, subtasks: usize) {
        self.phase().sources.insert(operator, subtasks);
    }

    /// A subtask of a source has read everything. When all have, the input has ended.
    pub(crate) fn source_finished(&self, operator: usize, subtask: usize) {
        let mut phase = self.phase();
        phase.finished.insert((operator, subtask));
        if phase.finished.len() == phase.sources.values().sum::<usize>() {
            self.end(&mut phase, Ending::Finished);
        }
    }

    /// Asks for an orderly stop at one last checkpoint.
    pub(crate) fn stop(&self) {
        self.end(&mut self.phase(), Ending::Stopped);
    }

    fn end(&self, phase: &mut Phase, ending: Ending) {
        if phase.last.is_none() {
            let checkpoint = CheckpointId(self.requested.load(Ordering::SeqCst)).next();
            phase.last = Some(Last { checkpoint, ending });
            for alarm in &phase.alarms {
                alarm.ring();
            }
        }
    }

    /// Asks the sources to end the epoch `checkpoint`. Refused, with false, once the last one is known.
    pub(crate) fn request(&self, checkpoint: CheckpointId) -> bool {
        let phase = self.phase();
        if phase.last.is_some() {
            return false;
        }
        self.requested.store(checkpoint.0, Ordering::SeqCst);
        for alarm in &phase.alarms {
            alarm.ring();
        }
        true
    }

    /// The newest epoch that was to be ended.
    pub(crate) fn requested(&self) -> CheckpointId {
        CheckpointId(self.requested.load(Ordering::SeqCst))
    }

    /// The last epoch, if it is known.
    pub(crate) fn last(&self) -> Option<Last> {
        self.phase().last
    }

    /// The manifest of `checkpoint` is written.
    pub(crate) fn completed(&self, checkpoint: CheckpointId) {
        self.completed.send_replace(checkpoint);
    }

    /// Follows completed checkpoints.
    pub(crate) fn completions(&self) -> watch::Receiver<CheckpointId> {
        self.completed.subscribe()
    }

    /// Ends the attempt. The first error counts; those after it are mostly its consequences.
    pub(crate) fn fail(&self, error: Error) {
        let mut phase = self.phase();
        if phase.error.is_some() {
            tracing::debug!("after the first failure: {error}");
        }
        phase.error.get_or_insert(error);
        self.failed.store(true, Ordering::SeqCst);
        for worker in &phase.workers {
            worker.unpark();
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn take_error(&self) -> Option<Error> {
        self.phase().error.take()
    }

    /// The counter of records that an operator skips.
    pub(crate) fn skipped(&self, uid: &str) -> Arc<AtomicU64> {
        Arc::clone(self.phase().skipped.entry(uid.to_owned()).or_default())
    }

    /// How many records each operator skipped.
    pub(crate) fn skipped_records(&self) -> BTreeMap<String, u64> {
        self.phase().skipped.iter().map(|(uid, n)| (uid.clone(), n.load(Ordering::Relaxed))).collect()
    }
}
