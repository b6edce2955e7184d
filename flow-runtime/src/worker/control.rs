//! What tells the workers of an attempt to end an epoch, to stop, or to give up.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    thread::Thread,
};

use tokio::sync::mpsc;

use super::Alarm;
use crate::{checkpoint::CheckpointId, error::Error, time::Listener};

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

/// What the coordinator of checkpoints hears.
#[derive(Debug)]
pub(crate) enum Event {
    /// The job wants to end.
    Ending,
    /// Somebody wants a checkpoint now.
    Asked,
    /// The manifest is written. Of each checkpoint either this or the next is said, once.
    Completed(CheckpointId),
    /// It will not complete, and why.
    Failed(CheckpointId, String),
}

/// Shared by all workers of one attempt.
pub(crate) struct Control {
    /// The newest epoch that sources were asked to end.
    requested: AtomicU64,
    phase: Mutex<Phase>,
    /// Whether the job wants to end, so that sources stop reading.
    ending: AtomicBool,
    failed: AtomicBool,
    checkpoints: Mutex<Outcomes>,
    /// How many checkpoints have failed: when it grows, operators look whether one of theirs has.
    failures: AtomicU64,
    events: mpsc::UnboundedSender<Event>,
    /// How many records wait for an answer from outside.
    under_way: AtomicI64,
    /// How many have got one.
    answers: AtomicU64,
    /// How many chains wait for what follows them.
    held_up: AtomicI64,
    /// Is told that something has happened that a test may wait for.
    observer: OnceLock<Listener>,
}

/// How checkpoints ended.
#[derive(Default)]
struct Outcomes {
    /// The newest complete one.
    complete: CheckpointId,
    /// Those after it that have failed.
    failed: BTreeSet<CheckpointId>,
    counts: CheckpointCounts,
}

/// How many checkpoints came to what end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointCounts {
    /// Whose manifest was written.
    pub completed: u64,
    /// That took too long or could not be written. What they held went with a later one.
    pub failed: u64,
}

impl std::ops::AddAssign for CheckpointCounts {
    fn add_assign(&mut self, more: Self) {
        self.completed += more.completed;
        self.failed += more.failed;
    }
}

#[derive(Default)]
struct Phase {
    ending: Option<Ending>,
    last: Option<Last>,
    error: Option<Error>,
    sources: HashMap<usize, usize>,
    finished: HashSet<(usize, usize)>,
    alarms: Vec<Alarm>,
    workers: Vec<Thread>,
    /// Of each worker, the newest checkpoint of which its sinks have committed everything.
    settled: HashMap<usize, CheckpointId>,
    skipped: BTreeMap<String, Arc<AtomicU64>>,
    late: BTreeMap<String, Arc<AtomicU64>>,
    late_output: BTreeMap<String, Arc<AtomicU64>>,
}

impl Control {
    /// `restored` is the checkpoint before the first epoch. The events are for [`coordinate`](super::coordinate).
    pub(crate) fn new(restored: CheckpointId) -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (events, receiver) = mpsc::unbounded_channel();
        let control = Control {
            requested: AtomicU64::new(restored.0),
            phase: Mutex::default(),
            ending: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            checkpoints: Mutex::new(Outcomes { complete: restored, ..Outcomes::default() }),
            failures: AtomicU64::new(0),
            events,
            under_way: AtomicI64::new(0),
            answers: AtomicU64::new(0),
            held_up: AtomicI64::new(0),
            observer: OnceLock::new(),
        };
        (control, receiver)
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A chain's operator, to be woken when there is something to do.
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

    /// The coordinator decides when the last checkpoint begins; sources stop reading meanwhile.
    fn end(&self, phase: &mut Phase, ending: Ending) {
        if phase.ending.is_none() {
            phase.ending = Some(ending);
            self.ending.store(true, Ordering::SeqCst);
            self.tell(Event::Ending);
        }
    }

    fn tell(&self, event: Event) {
        // Nobody listens only when the attempt has ended.
        let _ = self.events.send(event);
    }

    /// Asks for a checkpoint now.
    pub(crate) fn ask(&self) {
        self.tell(Event::Asked);
    }

    /// Whom to tell when a checkpoint has ended, well or not.
    pub(crate) fn observe(&self, observer: Listener) {
        let _ = self.observer.set(observer);
    }

    /// More records wait for an answer from outside, or fewer.
    pub(crate) fn under_way(&self, more: i64) {
        if more < 0 {
            self.answers.fetch_add(more.unsigned_abs(), Ordering::SeqCst);
        }
        let before = self.under_way.fetch_add(more, Ordering::SeqCst);
        if before + more == 0 {
            self.observed();
        }
    }

    /// Whether no record waits for an answer from outside.
    pub(crate) fn is_answered(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0
    }

    /// How many records have got an answer.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::SeqCst)
    }

    /// A chain more has to wait for what follows it, or one less.
    pub(crate) fn held_up(&self, more: i64) {
        self.held_up.fetch_add(more, Ordering::SeqCst);
        self.observed();
    }

    /// Whether a chain waits for what follows it.
    pub(crate) fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::SeqCst) > 0
    }

    /// The newest complete checkpoint.
    pub(crate) fn complete(&self) -> CheckpointId {
        self.outcomes().complete
    }

    /// The sinks of a worker have committed what this checkpoint carried for them.
    pub(crate) fn settled(&self, worker: usize, checkpoint: CheckpointId) {
        self.phase().settled.insert(worker, checkpoint);
        self.observed();
    }

    /// Whether the sinks of all workers have.
    pub(crate) fn is_settled(&self, checkpoint: CheckpointId) -> bool {
        let phase = self.phase();
        phase.settled.len() == phase.workers.len()
            && phase.settled.values().all(|settled| *settled >= checkpoint)
    }

    /// Whether the job wants to end, so that there is nothing more to read.
    pub(crate) fn ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Asks the sources to end the epoch `checkpoint`, which is the last one if the coordinator says so.
    pub(crate) fn request(&self, checkpoint: CheckpointId, last: bool) {
        let mut phase = self.phase();
        match phase.ending {
            Some(ending) if last => phase.last = Some(Last { checkpoint, ending }),
            _ => self.requested.store(checkpoint.0, Ordering::SeqCst),
        }
        for alarm in &phase.alarms {
            alarm.ring();
        }
    }

    /// The newest epoch, other than the last, that was to be ended.
    pub(crate) fn requested(&self) -> CheckpointId {
        CheckpointId(self.requested.load(Ordering::SeqCst))
    }

    /// The last epoch, if it is known.
    pub(crate) fn last(&self) -> Option<Last> {
        self.phase().last
    }

    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The manifest of `checkpoint` is written. Returns false when it came too late: the checkpoint has failed
    /// already, and stays so.
    pub(crate) fn completed(&self, checkpoint: CheckpointId) -> bool {
        let mut outcomes = self.outcomes();
        if outcomes.failed.contains(&checkpoint) {
            return false;
        }
        outcomes.complete = outcomes.complete.max(checkpoint);
        outcomes.counts.completed += 1;
        // All operators have passed it, so nobody asks for what was before it.
        outcomes.failed.retain(|failed| *failed > checkpoint);
        self.tell(Event::Completed(checkpoint));
        drop(outcomes);
        self.observed();
        true
    }

    /// The checkpoint will not complete: whatever still arrives of it, no manifest is written. Its records go with the
    /// next one. Has no effect on one that is complete.
    pub(crate) fn checkpoint_failed(&self, checkpoint: CheckpointId, cause: String) {
        {
            let mut outcomes = self.outcomes();
            if checkpoint <= outcomes.complete || !outcomes.failed.insert(checkpoint) {
                return;
            }
            outcomes.counts.failed += 1;
            self.failures.fetch_add(1, Ordering::SeqCst);
            self.tell(Event::Failed(checkpoint, cause));
        }
        // Whoever waits for a part of it need not any more.
        self.wake();
        self.observed();
    }

    fn observed(&self) {
        if let Some(observer) = self.observer.get() {
            observer();
        }
    }

    /// Gives every chain a turn.
    pub(crate) fn wake(&self) {
        for alarm in &self.phase().alarms {
            alarm.ring();
        }
    }

    /// Whether the checkpoint has failed.
    pub(crate) fn is_failed(&self, checkpoint: CheckpointId) -> bool {
        self.failures() > 0 && self.outcomes().failed.contains(&checkpoint)
    }

    /// How many checkpoints have failed so far in this attempt.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::SeqCst)
    }

    /// How many checkpoints came to what end in this attempt.
    pub(crate) fn checkpoint_counts(&self) -> CheckpointCounts {
        self.outcomes().counts
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

    /// The counter of records that came too late for their windows.
    pub(crate) fn late(&self, uid: &str) -> Arc<AtomicU64> {
        Arc::clone(self.phase().late.entry(uid.to_owned()).or_default())
    }

    /// How many records came too late for the windows of each operator.
    pub(crate) fn late_records(&self) -> BTreeMap<String, u64> {
        self.phase().late.iter().map(|(uid, n)| (uid.clone(), n.load(Ordering::Relaxed))).collect()
    }

    /// The counter of records that came too late and went to a late output.
    pub(crate) fn late_output(&self, uid: &str) -> Arc<AtomicU64> {
        Arc::clone(self.phase().late_output.entry(uid.to_owned()).or_default())
    }

    /// How many records went to the late output of each operator.
    pub(crate) fn late_output_records(&self) -> BTreeMap<String, u64> {
        self.phase().late_output.iter().map(|(uid, n)| (uid.clone(), n.load(Ordering::Relaxed))).collect()
    }

    /// How many records each operator skipped.
    pub(crate) fn skipped_records(&self) -> BTreeMap<String, u64> {
        self.phase().skipped.iter().map(|(uid, n)| (uid.clone(), n.load(Ordering::Relaxed))).collect()
    }
}
