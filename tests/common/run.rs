//! Running jobs in this process, each within a limit of time.

use std::{
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use flow::{
    Config, Definition, Error, Job, Restart, Summary,
    checkpoint::Store,
    worker::{Stop, run_on, run_until},
};

/// No test takes so long, unless something hangs.
const LIMIT: Duration = Duration::from_secs(30);

/// What the pipeline says, at this parallelism, without pauses before a restart, and without any checkpoint but the
/// last.
pub(crate) fn config<D: Definition>(job: &Job<D>, parallelism: usize) -> Config {
    let mut config = Config::with_parallelism(job.plan(), parallelism);
    config.checkpoint_interval = Some(Duration::from_secs(3600));
    config.restart = Restart::FixedDelay { attempts: 5, delay: Duration::ZERO };
    config
}

/// As [`config`], with a checkpoint every 20 milliseconds.
pub(crate) fn often<D: Definition>(job: &Job<D>, parallelism: usize) -> Config {
    Config { checkpoint_interval: Some(Duration::from_millis(20)), ..config(job, parallelism) }
}

/// Runs a job that has to end well.
#[track_caller]
pub(crate) fn run<D: Definition + 'static>(job: Job<D>, parallelism: usize) -> Summary {
    let config = config(&job, parallelism);
    run_with(job, config).expect("the job ends well")
}

/// Runs a job, however it ends.
#[track_caller]
pub(crate) fn run_with<D: Definition + 'static>(job: Job<D>, config: Config) -> Result<Summary, Error> {
    start(job, config).wait()
}

/// Runs a job beside the test.
pub(crate) fn start<D: Definition + 'static>(job: Job<D>, config: Config) -> Background {
    let stop = Stop::default();
    let (done, outcome) = mpsc::channel();
    let stopping = stop.clone();
    let thread = thread::spawn(move || {
        // The test that would wait for it may have failed.
        let _ = done.send(run_until(&job, &config, &stopping));
    });
    Background { stop, outcome, thread }
}

/// As [`start`], with checkpoints in this store.
pub(crate) fn start_on<D: Definition + 'static>(job: Job<D>, config: Config, store: Store) -> Background {
    let stop = Stop::default();
    let (done, outcome) = mpsc::channel();
    let stopping = stop.clone();
    let thread = thread::spawn(move || {
        let _ = done.send(run_on(&job, &config, &store, &stopping));
    });
    Background { stop, outcome, thread }
}

/// A job that runs beside the test.
pub(crate) struct Background {
    stop: Stop,
    outcome: mpsc::Receiver<Result<Summary, Error>>,
    thread: JoinHandle<()>,
}

impl Background {
    /// Waits until it ends by itself.
    #[track_caller]
    pub(crate) fn wait(self) -> Result<Summary, Error> {
        match self.outcome.recv_timeout(LIMIT) {
            Ok(outcome) => {
                self.thread.join().expect("the thread has sent its outcome");
                outcome
            }
            Err(_) => panic!("the job hangs"),
        }
    }

    /// Asks it to stop.
    pub(crate) fn request_stop(&self) {
        self.stop.request();
    }

    /// Stops it at a last checkpoint.
    #[track_caller]
    pub(crate) fn stop(self) -> Summary {
        self.stop.request();
        self.wait().expect("the job stops well")
    }
}

/// Runs `f` on a thread of its own, and gives up after a while.
#[track_caller]
pub(crate) fn within<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(f()));
    outcome.recv_timeout(LIMIT).expect("this ends")
}

/// Sorted, to be compared as a multiset.
pub(crate) fn sorted<T: Ord>(records: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut records: Vec<T> = records.into_iter().collect();
    records.sort_unstable();
    records
}
