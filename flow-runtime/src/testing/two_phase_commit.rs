//! What the runtime expects of a transactional sink, as a suite of checks.

mod checks;
mod subtask;

use std::{fmt, future::Future, panic::AssertUnwindSafe};

use futures_util::FutureExt;

use crate::{
    error::{BoxError, panic_message},
    sink::{Sink, Write},
};

/// A sink under test, and how to look at what it wrote.
pub trait SinkUnderTest: Sync {
    /// The sink.
    type Sink: Sink<Buffer: Write<Self::Record>>;
    /// What is written into it.
    type Record: Send;

    /// The sink as a new process would build it: of the same server, directory or table each time, and without
    /// anything that the former one had in memory.
    fn sink(&self) -> Self::Sink;

    /// The record that carries this number. Each is written once.
    fn record(&self, number: u64) -> Self::Record;

    /// The numbers of all records that a reader sees now, in any order, repeats included.
    fn visible(&self) -> impl Future<Output = Result<Vec<u64>, BoxError>> + Send;

    /// How many transactions are open or pre-committed at the server now, of any job, where that can be seen: what
    /// recovery leaves behind might hold locks or disk space for ever.
    fn in_doubt(&self) -> impl Future<Output = Result<Option<usize>, BoxError>> + Send {
        async { Ok(None) }
    }
}

/// Runs every check against a sink: that nothing is seen before it is committed, that a handle commits from another
/// process, that commits repeat without effect, that recovery leaves nothing behind and touches nobody else's, that a
/// commit never waits for the next transaction, and more. [`Report::assert`] makes a test of it.
///
/// Every check is a job of its own, named `conformance-..`, and writes records with numbers of its own, so all use
/// one server. Needs a tokio runtime with several threads and time enabled.
///
/// ```
/// use flow::{BoxError, testing::{SinkUnderTest, two_phase_commit_suite}, file};
/// # use std::{fs, path::PathBuf};
///
/// struct Lines(PathBuf);
///
/// impl SinkUnderTest for Lines {
///     type Sink = file::FileSink<file::Lines>;
///     type Record = String;
///
///     fn sink(&self) -> Self::Sink {
///         file::to_lines(&self.0).overwrite()
///     }
///     fn record(&self, number: u64) -> String {
///         number.to_string()
///     }
///     async fn visible(&self) -> Result<Vec<u64>, BoxError> {
///         let mut numbers = Vec::new();
///         for entry in fs::read_dir(&self.0)? {
///             let path = entry?.path();
///             if path.extension().is_some_and(|extension| extension == "txt") {
///                 for line in fs::read_to_string(path)?.lines() {
///                     numbers.push(line.parse()?);
///                 }
///             }
///         }
///         Ok(numbers)
///     }
/// }
/// # fn main() {}
/// ```
pub async fn two_phase_commit_suite<U: SinkUnderTest>(subject: &U) -> Report {
    let mut checks = Vec::new();
    macro_rules! run {
        ($($name:ident),* $(,)?) => { $(
            let number = checks.len() as u64;
            let range = subtask::Range::new(subject, stringify!($name), number);
            let outcome = AssertUnwindSafe(checks::$name(&range)).catch_unwind().await;
            let outcome = match outcome {
                Ok(outcome) => outcome.map_err(|e| e.to_string()),
                Err(payload) => Err(format!("it panicked: {}", panic_message(&*payload))),
            };
            checks.push(Check { name: stringify!($name).replace('_', " "), outcome });
        )* };
    }
    run!(
        nothing_is_visible_before_the_commit,
        a_commit_makes_everything_visible_once,
        committing_again_changes_nothing,
        a_handle_commits_from_another_process,
        recovering_again_changes_nothing,
        what_was_not_pre_committed_never_appears,
        what_no_checkpoint_names_never_appears,
        an_epoch_without_records_commits_nothing,
        a_commit_does_not_wait_for_the_next_transaction,
        epochs_commit_in_order_after_several_were_pre_committed,
        subtasks_do_not_disturb_each_other,
        handles_of_subtasks_that_are_gone_are_committed,
        recovery_leaves_other_jobs_alone,
        an_attempt_that_was_replaced_adds_nothing,
        a_job_goes_on_after_recovery,
        an_aborted_transaction_never_appears,
        a_commit_does_not_claim_what_is_gone,
        recovery_leaves_nothing_behind,
    );
    Report { checks }
}

/// One check and how it ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Check {
    /// What the sink should keep to.
    pub name: String,
    /// What it did instead, if it did not.
    pub outcome: Result<(), String>,
}

/// What the suite found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// All checks, in order.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether every check passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.outcome.is_ok())
    }

    /// # Panics
    /// With the whole report, when a check failed.
    pub fn assert(&self) {
        assert!(self.passed(), "the sink breaks its contract:\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Check { name, outcome } in &self.checks {
            match outcome {
                Ok(()) => writeln!(f, "  ok      {name}")?,
                Err(cause) => writeln!(f, "  FAILED  {name}: {cause}")?,
            }
        }
        Ok(())
    }
}
