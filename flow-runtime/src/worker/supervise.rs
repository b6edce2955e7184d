//! Running a job through failures: attempt after attempt, until it ends, is stopped, or has failed too often.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{BuildHasher, Hasher},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    CheckpointCounts, Config, Control, Ending, Retention, Shared, attempt,
    coordinate::coordinate,
    restart::{Failed, Failures},
};
use crate::{
    chain::Environment,
    checkpoint::{CheckpointId, Restore, Restored, Store},
    error::Error,
    failpoint::{Point, reach},
    job::{Definition, Job},
    plan::{Guarantee, Plan},
    time::Listener,
};

/// How a job ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// At the end of its input, or by request.
    pub ending: Ending,
    /// The last checkpoint.
    pub checkpoint: CheckpointId,
    /// The checkpoint from which it resumed, if it did.
    pub resumed_from: Option<CheckpointId>,
    /// How often it was restarted after a failure.
    pub restarts: u32,
    /// How many checkpoints came to what end, in all attempts.
    pub checkpoints: CheckpointCounts,
    /// The records that operators skipped, by uid, in the last attempt.
    pub skipped: BTreeMap<String, u64>,
    /// The records that came when all of their windows were over and were dropped, by the uid of the window, in the last
    /// attempt.
    pub late: BTreeMap<String, u64>,
    /// Those that went to a late output instead.
    pub late_output: BTreeMap<String, u64>,
    /// How long it ran.
    pub elapsed: Duration,
}

/// Asks a running job to stop, from any thread: for a program that embeds a job and does more than that. Clones are
/// the same.
///
/// ```
/// # use flow_runtime::{error::Error, job::{Definition, Job}, worker::{Config, Stop, Summary, run_until}};
/// # fn embedded<D: Definition>(job: &Job<D>, config: &Config) -> Result<Summary, Error> {
/// let stop = Stop::default();
/// let signal = stop.clone();
/// std::thread::spawn(move || {
///     // ... when the program is told to shut down:
///     signal.request();
/// });
/// let summary = run_until(job, config, &stop)?;
/// # Ok(summary)
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Stop(Arc<StopState>);

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("requested", &self.requested()).finish()
    }
}

/// Is told at the beginning of each attempt, and whenever a checkpoint has ended.
pub(crate) type Observer = Arc<dyn Fn(Observed) + Send + Sync>;

/// What a job does while it is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    Attempt,
    Checkpoint,
}

#[derive(Default)]
struct StopState {
    requests: AtomicUsize,
    /// Whether it must end without any order.
    killed: AtomicBool,
    running: Mutex<Option<Arc<Control>>>,
    observer: OnceLock<Observer>,
}

impl Stop {
    /// Asks for an orderly end: the sources stop reading, a last checkpoint is taken, and everything that it carries
    /// is committed. Before the job runs, it makes the job end as soon as it does; asking twice changes nothing.
    pub fn request(&self) {
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        if let Some(control) = &*self.0.running.lock().unwrap_or_else(PoisonError::into_inner) {
            control.stop();
        }
    }

    fn requested(&self) -> bool {
        self.0.requests.load(Ordering::SeqCst) > 0
    }

    fn watch(&self, control: Option<&Arc<Control>>) {
        if let (Some(control), Some(observer)) = (control, self.0.observer.get()) {
            observer(Observed::Attempt);
            let observer = Arc::clone(observer);
            control.observe(Arc::new(move || observer(Observed::Checkpoint)));
        }
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) = control.cloned();
        // The request may have come just before.
        if let Some(control) = control.filter(|_| self.requested()) {
            if self.0.killed.load(Ordering::SeqCst) { control.fail(killed()) } else { control.stop() }
        }
    }

    /// For a test that drives the job.
    pub(crate) fn observed_by(observer: Observer) -> Self {
        let stop = Stop::default();
        let _ = stop.0.observer.set(observer);
        stop
    }

    /// The attempt that runs now.
    pub(crate) fn running(&self) -> Option<Arc<Control>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the job as a crash would, without a checkpoint and without another attempt.
    pub(crate) fn kill(&self) {
        self.0.killed.store(true, Ordering::SeqCst);
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        if let Some(control) = self.running() {
            control.fail(killed());
        }
    }
}

fn killed() -> Error {
    Error::Config("the job was killed".to_owned())
}

/// Runs a job in this process until it ends.
///
/// # Errors
/// What made the last attempt fail, or why it could not start.
pub fn run<D: Definition>(job: &Job<D>, config: &Config) -> Result<Summary, Error> {
    run_until(job, config, &Stop::default())
}

/// As [`run`], but also ends, with [`Ending::Stopped`], when asked to.
///
/// # Errors
/// As [`run`]. A job that fails after it was asked to stop is not restarted.
pub fn run_until<D: Definition>(job: &Job<D>, config: &Config, stop: &Stop) -> Result<Summary, Error> {
    config.check(D::PLAN)?;
    let store = match &config.checkpoint_dir {
        Some(url) => Store::open(url)?,
        None => Store::in_memory(),
    };
    run_on(job, config, &store, stop)
}

/// As [`run_until`], with checkpoints in a store that the program has opened itself; `checkpoint_dir` is not looked at.
///
/// # Errors
/// As [`run_until`].
pub fn run_on<D: Definition>(
    job: &Job<D>,
    config: &Config,
    store: &Store,
    stop: &Stop,
) -> Result<Summary, Error> {
    let plan = D::PLAN;
    config.check(plan)?;
    // Until the job is over, whatever ends it.
    let _lock = store.lock()?;
    let mut restore = Restore::new(config.restore.clone(), config.allow_older_checkpoint);
    let mut failures = Failures::new(strategy(plan, config));
    let began = Instant::now();
    let (mut restarts, mut resumed_from) = (0, None);
    let mut checkpoints = CheckpointCounts::default();
    loop {
        let started = Instant::now();
        let outcome = one_attempt(job, config, store, &mut restore, stop);
        let (error, progressed) = match outcome {
            Ok(Attempt { last, restored, skipped, late, late_output, counts }) => {
                resumed_from = resumed_from.or(restored);
                checkpoints += counts;
                clean_up(store, config, last.ending);
                return Ok(Summary {
                    ending: last.ending,
                    checkpoint: last.checkpoint,
                    resumed_from,
                    restarts,
                    checkpoints,
                    skipped,
                    late,
                    late_output,
                    elapsed: began.elapsed(),
                });
            }
            Err(failure) => {
                checkpoints += failure.counts;
                (failure.error, failure.counts.completed > 0)
            }
        };
        if !error.restartable() || stop.requested() {
            return Err(error);
        }
        let failed = Failed { at: began.elapsed(), ran: started.elapsed(), progressed };
        let Some(pause) = failures.next(failed) else { return Err(error) };
        restarts += 1;
        tracing::warn!(restarts, "the job failed and restarts in {pause:?}: {error}");
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if stop.requested() {
                return Err(error);
            }
            std::thread::sleep(
                until.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)),
            );
        }
    }
}

/// Deletes checkpoints where that was asked for. Everything is committed by now, so a job that cannot has ended well all
/// the same.
fn clean_up(store: &Store, config: &Config, ending: Ending) {
    let retention = match ending {
        Ending::Finished => config.on_success,
        Ending::Stopped => config.on_cancel,
    };
    if retention == Retention::Retain {
        return;
    }
    let delete = || Ok::<_, Error>(io_runtime()?.block_on(store.delete_checkpoints())?);
    match delete() {
        Ok(()) => tracing::info!("deleted the checkpoints in {}", store.location()),
        Err(error) => tracing::warn!("could not delete the checkpoints in {}: {error}", store.location()),
    }
}

/// What does the I/O of an attempt, or of a command.
pub(crate) fn io_runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_name("flow-io")
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::Config(format!("the I/O runtime could not be started: {e}")))
}

/// An at-most-once job has no checkpoint to go back to: starting again would process records twice.
fn strategy(plan: &Plan, config: &Config) -> super::Restart {
    match plan.guarantee {
        Guarantee::AtMostOnce => super::Restart::Never,
        _ => config.restart,
    }
}

struct Attempt {
    last: super::Last,
    restored: Option<CheckpointId>,
    skipped: BTreeMap<String, u64>,
    late: BTreeMap<String, u64>,
    late_output: BTreeMap<String, u64>,
    counts: CheckpointCounts,
}

struct Failure {
    error: Error,
    counts: CheckpointCounts,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { error, counts: CheckpointCounts::default() }
    }
}

fn one_attempt<D: Definition>(
    job: &Job<D>,
    config: &Config,
    store: &Store,
    restore: &mut Restore,
    stop: &Stop,
) -> Result<Attempt, Failure> {
    let plan = D::PLAN;
    let tokio = io_runtime()?;
    let operators = plan.remembered();
    let resumed = tokio
        .block_on(restore.resume(store, |manifest| {
            manifest.check(plan.name, &operators, config.max_parallelism, config.allow_dropped_state)
        }))
        .map_err(Error::from)?;
    if let Some(note) = &resumed.note {
        tracing::warn!("{note}");
    }
    reach(Point::RestoreChosen);
    let restored_id = resumed.restored.as_ref().map(|restored| restored.manifest.id);
    report_start(plan, config, resumed.restored.as_ref(), store);
    let (control, events) = Control::new(resumed.last);
    let control = Arc::new(control);
    let environment = Arc::new(Environment {
        job: plan.name.to_owned(),
        parallelism: config.parallelism,
        max_parallelism: u32::try_from(config.max_parallelism).unwrap_or(u32::MAX),
        aligned: plan.guarantee == Guarantee::ExactlyOnce,
        goes_back: plan.guarantee != Guarantee::AtMostOnce,
        attempt: random(),
        control: Arc::clone(&control),
        tokio: tokio.handle().clone(),
        clock: config.clock.clone(),
        store: store.clone(),
        compression: config.compression,
        last: resumed.last,
        restored: resumed.restored,
        shared: Shared::default(),
    });
    stop.watch(Some(&control));
    let chains = Arc::downgrade(&control);
    let moved: Listener = Arc::new(move || {
        if let Some(control) = chains.upgrade() {
            control.wake();
        }
    });
    config.clock.listen(&moved);
    tokio.spawn(coordinate(Arc::clone(&control), events, environment.last, config.timing()));
    let workers = plan.workers(config.parallelism);
    let ran = attempt::run(&environment, plan, job.build(), workers, config.retain);
    stop.watch(None);
    drop(moved);
    // Whatever an attempt left running must be gone before the next one begins.
    drop(environment);
    tokio.shutdown_timeout(Duration::from_secs(10));
    ran?;
    if let Some(error) = control.take_error() {
        return Err(Failure { error, counts: control.checkpoint_counts() });
    }
    let (skipped, late, late_output) =
        (control.skipped_records(), control.late_records(), control.late_output_records());
    match control.last() {
        Some(last) => Ok(Attempt {
            last,
            restored: restored_id,
            skipped,
            late,
            late_output,
            counts: control.checkpoint_counts(),
        }),
        None => Err(Error::Config("the job ended although its input had not".to_owned()).into()),
    }
}

fn report_start(plan: &Plan, config: &Config, restored: Option<&Restored>, store: &Store) {
    match restored {
        Some(Restored { manifest, .. }) if manifest.finished => tracing::info!(
            job = plan.name,
            "resuming from checkpoint {} in {}, at which the job had read all of its input",
            manifest.id,
            store.location()
        ),
        Some(Restored { manifest, .. }) => tracing::info!(
            job = plan.name,
            parallelism = config.parallelism,
            "resuming from checkpoint {} in {}",
            manifest.id,
            store.location()
        ),
        None => {
            tracing::info!(job = plan.name, parallelism = config.parallelism, "starting from the beginning")
        }
    }
}

/// A number that no other attempt has.
pub(super) fn random() -> u64 {
    // The standard library's hasher is seeded from the system's randomness.
    std::hash::RandomState::new().build_hasher().finish()
}
