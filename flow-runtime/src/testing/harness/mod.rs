//! Pipelines under test: the real engine in this process, with inputs that a test pushes records into, outputs that it
//! looks into, and a clock that moves when it says so.

mod input;
mod output;
mod signal;
mod snapshot;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

pub use input::Input;
pub use output::Output;
pub use snapshot::Snapshot;

use self::{input::InputPort, signal::Signal};
use crate::{
    checkpoint::Store,
    error::Error,
    job::{Definition, Job},
    time::{Clock, Listener, Timestamp},
    worker::{Config, Observed, Restart, Stop, Summary, run_on},
};

/// Runs a pipeline in a test, step by step and without a pause that a test would have to guess.
///
/// The pipeline runs as it would in production, on the same engine, and takes its checkpoints when the test asks for
/// something. Processing time stands still until the test [advances](Self::advance) it.
///
/// ```
/// use flow::{pipeline, testing::{Harness, Input, Output}, watermark::bounded, window::tumbling};
///
/// #[pipeline]
/// fn per_minute(clicks: Input<(i64, String)>, counts: Output<(String, u64)>) {
///     source(clicks)
///         .watermarks(bounded("5s"), |(time, _)| *time)
///         .key_by(|(_, page)| page.clone())
///         .window(tumbling("1m"))
///         .count()
///         .sink(counts);
/// }
///
/// let mut test = Harness::new();
/// let (clicks, counts) = (test.input(), test.output());
/// test.start(per_minute(clicks.clone(), counts.clone()))?;
///
/// clicks.push((1_000, "/home".to_owned()));
/// clicks.push((59_000, "/home".to_owned()));
/// test.settle()?;
/// assert!(counts.take().is_empty(), "the minute is not over");
/// let before = test.snapshot()?;
///
/// clicks.push((65_000, "/about".to_owned()));
/// test.settle()?;
/// assert_eq!(counts.take(), [("/home".to_owned(), 2)]);
///
/// // Again from before, and on three workers.
/// test.parallelism(3).restore(&before, per_minute(clicks.clone(), counts.clone()))?;
/// test.finish()?;
/// assert_eq!(counts.take_sorted(), [("/about".to_owned(), 1), ("/home".to_owned(), 2)]);
/// # Ok::<_, flow::Error>(())
/// ```
pub struct Harness {
    parallelism: usize,
    clock: Clock,
    patience: Duration,
    store: Store,
    signal: Signal,
    inputs: Arc<Mutex<Vec<Arc<dyn InputPort>>>>,
    running: Option<Running>,
    /// Looks again when the clock has moved.
    ticks: Listener,
}

/// A job on a thread of its own.
struct Running {
    stop: Stop,
    outcome: Arc<Mutex<Option<Result<Summary, Error>>>>,
    thread: JoinHandle<()>,
}

impl Harness {
    /// One worker, the time 2020-01-01 00:00 UTC, and no checkpoint to begin from.
    #[must_use]
    pub fn new() -> Self {
        let signal = Signal::default();
        let ringing = signal.clone();
        let ticks: Listener = Arc::new(move || ringing.ring());
        let clock = Clock::manual(Timestamp::from_millis(1_577_836_800_000));
        clock.listen(&ticks);
        Harness {
            parallelism: 1,
            clock,
            patience: Duration::from_secs(30),
            store: Store::in_memory(),
            signal,
            inputs: Arc::default(),
            running: None,
            ticks,
        }
    }

    /// How many subtasks operators have that set no number of their own, from the next start on.
    pub fn parallelism(&mut self, parallelism: usize) -> &mut Self {
        self.parallelism = parallelism;
        self
    }

    /// Processing time begins here instead. To be called before the first start.
    pub fn starting_at(&mut self, time: impl Into<Timestamp>) -> &mut Self {
        self.clock = Clock::manual(time.into());
        self.clock.listen(&self.ticks);
        self
    }

    /// How long, by a real clock, something may take before the test is told that it hangs: 30 seconds if nothing is said.
    pub fn patience(&mut self, patience: Duration) -> &mut Self {
        self.patience = patience;
        self
    }

    /// A source for the pipeline, with one split, which keeps the order of all records.
    pub fn input<T: Clone + Send + Sync + 'static>(&mut self) -> Input<T> {
        self.input_of(1)
    }

    /// A source with several splits, which several subtasks can read.
    pub fn input_of<T: Clone + Send + Sync + 'static>(&mut self, splits: usize) -> Input<T> {
        let input = Input::new(splits, self.signal.clone());
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(input.clone()));
        input
    }

    /// A sink for the pipeline.
    pub fn output<T: Send + 'static>(&mut self) -> Output<T> {
        Output::watched_by(self.signal.clone())
    }

    /// Processing time, to be given to what needs it beside the pipeline.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Starts the job, from the newest checkpoint that this harness has of it; without one, from the beginning. A job
    /// that fails does so for good, unless the pipeline says how to restart.
    ///
    /// # Errors
    /// When a job runs already. What is wrong with the job itself is said by what is asked for next.
    pub fn start<D: Definition + 'static>(&mut self, job: Job<D>) -> Result<(), Error> {
        let mut config = Config::with_parallelism(job.plan(), self.parallelism);
        config.restart = job.plan().restart.unwrap_or(Restart::Never);
        self.start_with(job, config)
    }

    /// As [`start`](Self::start), with settings of the test's own. Checkpoints are taken when the test asks for them and
    /// by the interval of the settings, if it has one; they are kept in memory; and processing time is the harness's.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with<D: Definition + 'static>(&mut self, job: Job<D>, config: Config) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(trouble("a job runs already: let it `finish`, or `stop` or `crash` it"));
        }
        let config = Config {
            clock: self.clock.clone(),
            checkpoint_dir: None,
            // A test asks for those that it wants.
            checkpoint_interval: config.checkpoint_interval.or(Some(Duration::from_secs(3600 * 24 * 365))),
            ..config
        };
        let (inputs, signal) = (Arc::clone(&self.inputs), self.signal.clone());
        reset(&inputs);
        let stop = Stop::observed_by(Arc::new(move |happened| {
            if happened == Observed::Attempt {
                reset(&inputs);
            }
            signal.ring();
        }));
        let outcome = Arc::new(Mutex::new(None));
        let (stopping, store, signal, ended) =
            (stop.clone(), self.store.clone(), self.signal.clone(), Arc::clone(&outcome));
        let thread = std::thread::spawn(move || {
            let result = run_on(&job, &config, &store, &stopping);
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            signal.ring();
        });
        self.running = Some(Running { stop, outcome, thread });
        Ok(())
    }

    /// Returns when everything that was pushed has gone through the pipeline, with whatever it made due and the answers
    /// that asynchronous operators wait for, and what came out is committed.
    ///
    /// # Errors
    /// What made the job fail; and when it does not get there within the [patience](Self::patience), because a future
    /// has no answer, for example.
    pub fn settle(&mut self) -> Result<(), Error> {
        let answers = |running: Option<&Running>| running?.stop.running().map(|control| control.answers());
        loop {
            let before = answers(self.running.as_ref());
            self.checkpoint()?;
            let running = self.running.as_ref().ok_or_else(not_running)?;
            let answered = || running.stop.running().is_some_and(|control| control.is_answered());
            let waited = self.signal.wait(self.patience, || (running.ended() || answered()).then_some(()));
            if waited.is_none() {
                return Err(trouble(&format!(
                    "asynchronous operators had no answer within {:?}: use `checkpoint` where none is to be expected, or `advance` the clock to their timeout",
                    self.patience
                )));
            }
            // What was answered since may have come after the checkpoint.
            if answers(Some(running)) == before {
                return Ok(());
            }
        }
    }

    /// Returns when everything that was pushed has gone into the pipeline, and what has come out of it is committed. What
    /// asynchronous operators wait for is under way still, as a part of the checkpoint that this takes.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        let patience = self.patience;
        let running = self.running.as_ref().ok_or_else(not_running)?;
        let all_read = || self.left() == 0 && running.stop.running().is_some();
        self.signal.wait(patience, || (running.ended() || all_read()).then_some(()));
        let before = match running.stop.running() {
            Some(control) if !running.ended() && self.left() == 0 => {
                // One that has begun already may be of before.
                let before = control.requested();
                control.ask();
                before
            }
            _ => return Err(self.why()),
        };
        let settled = || {
            let control = running.stop.running()?;
            let complete = control.complete();
            (complete > before && control.is_settled(complete)).then_some(true)
        };
        let ended = || running.ended().then_some(false);
        match self.signal.wait(patience, || ended().or_else(settled)) {
            Some(true) => Ok(()),
            _ => Err(self.why()),
        }
    }

    /// Lets processing time pass: whatever became due has fired, timeouts have come, and what came out is
    /// [committed](Self::checkpoint). All of the time passes at once.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn advance(&mut self, time: Duration) -> Result<(), Error> {
        // What was pushed before came before.
        self.checkpoint()?;
        self.clock.advance(time);
        let running = self.running.as_ref().ok_or_else(not_running)?;
        self.signal.wait(self.patience, || (running.ended() || !self.clock.is_due()).then_some(()));
        self.checkpoint()
    }

    /// Waits until something is so, in the pipeline or outside of it: for tests that look into a job between its
    /// checkpoints.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn until(&mut self, mut so: impl FnMut() -> bool) -> Result<(), Error> {
        let running = self.running.as_ref().ok_or_else(not_running)?;
        let is_so = self
            .signal
            .wait(self.patience, || if so() { Some(true) } else { running.ended().then_some(false) });
        if is_so == Some(true) { Ok(()) } else { Err(self.why()) }
    }

    /// Waits until records have to wait because a sink, or an operator that waits for answers, takes no more: see
    /// [`Output::hold`]. Nothing is read then until it goes on, so `settle` would wait for ever.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn until_held_up(&mut self) -> Result<(), Error> {
        let running = self.running.as_ref().ok_or_else(not_running)?;
        let held_up = || running.stop.running().is_some_and(|control| control.is_held_up());
        let is_so = self
            .signal
            .wait(self.patience, || if held_up() { Some(true) } else { running.ended().then_some(false) });
        if is_so == Some(true) { Ok(()) } else { Err(self.why()) }
    }

    /// Keeps the [checkpoint](Self::checkpoint) of this moment.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        self.checkpoint()?;
        Snapshot::of(&self.store)
    }

    /// Starts a job from a snapshot, whatever became of the job since; one that runs is [killed](Self::crash). What the
    /// inputs were pushed after the snapshot is read again. What the outputs have committed since stays there, as it
    /// would in a database: take it out before.
    ///
    /// # Errors
    /// When the snapshot cannot be read.
    pub fn restore<D: Definition + 'static>(
        &mut self,
        snapshot: &Snapshot,
        job: Job<D>,
    ) -> Result<(), Error> {
        self.crash();
        self.store = snapshot.copy()?;
        self.start(job)
    }

    /// Kills the job, as if the machine had failed: nothing is flushed, committed or written any more. The next start
    /// goes on from its last checkpoint. Does nothing when no job runs.
    pub fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop.kill();
            // That it was killed is no news.
            drop(running.join());
        }
    }

    /// Stops the job as an operator would, at a last checkpoint, from which the next start goes on.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn stop(&mut self) -> Result<Summary, Error> {
        self.running.as_ref().ok_or_else(not_running)?.stop.request();
        self.ended()
    }

    /// Closes all inputs, and returns when the job has read them to their end and everything is committed.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn finish(&mut self) -> Result<Summary, Error> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|input| input.close());
        self.ended()
    }

    /// Waits until the job ends.
    fn ended(&mut self) -> Result<Summary, Error> {
        let running = self.running.as_ref().ok_or_else(not_running)?;
        if self.signal.wait(self.patience, || running.ended().then_some(())).is_none() {
            return Err(self.why());
        }
        let running = self.running.take().ok_or_else(not_running)?;
        running.join()
    }

    /// How many pushes have not gone through their source's chain.
    fn left(&self) -> usize {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|input| input.left()).sum()
    }

    /// Why the job did not get to where the test wanted it.
    fn why(&mut self) -> Error {
        if self.running.as_ref().is_some_and(Running::ended)
            && let Some(running) = self.running.take()
        {
            return match running.join() {
                Ok(_) => trouble("the job has ended"),
                Err(error) => error,
            };
        }
        let left = match self.left() {
            0 => String::new(),
            left => format!(", with {left} pushes that its sources have not read"),
        };
        trouble(&format!("the job did not get there within {:?}{left}", self.patience))
    }
}

impl Running {
    fn ended(&self) -> bool {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn join(self) -> Result<Summary, Error> {
        if self.thread.join().is_err() {
            return Err(trouble("the job's thread panicked"));
        }
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        outcome.unwrap_or_else(|| Err(not_running()))
    }
}

impl Default for Harness {
    fn default() -> Self {
        Harness::new()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.crash();
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness")
            .field("parallelism", &self.parallelism)
            .field("clock", &self.clock)
            .field("running", &self.running.is_some())
            .finish_non_exhaustive()
    }
}

fn reset(inputs: &Mutex<Vec<Arc<dyn InputPort>>>) {
    inputs.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|input| input.reset());
}

fn trouble(what: &str) -> Error {
    Error::Config(what.to_owned())
}

fn not_running() -> Error {
    trouble("no job runs: `start` one")
}
