//! The file sink and that of the example, against the suite that is there for everybody's; and the suite, against
//! sinks with a mistake each.

#[path = "../examples/two_phase_sink/spool.rs"]
mod spool;
#[path = "two_phase_commit/state.rs"]
mod state;

use std::{fs, path::Path};

use flow::{
    BoxError, TwoPhaseCommit, file,
    sink::{CommitError, Committed, SinkContext, Transaction},
    testing::{Report, SinkUnderTest, two_phase_commit_suite},
};
use spool::{Prepared, Spool};
use tempfile::TempDir;

fn names(dir: &Path) -> Result<Vec<String>, BoxError> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// The numbers in the lines of all files that are finished.
fn lines(dir: &Path, finished: impl Fn(&str) -> bool) -> Result<Vec<u64>, BoxError> {
    let mut numbers = Vec::new();
    for name in names(dir)?.iter().filter(|name| finished(name)) {
        for line in fs::read_to_string(dir.join(name))?.lines() {
            numbers.push(line.parse()?);
        }
    }
    Ok(numbers)
}

struct Files(TempDir);

impl SinkUnderTest for Files {
    type Sink = file::FileSink<file::Lines>;
    type Record = String;

    fn sink(&self) -> Self::Sink {
        // Each check is another job, and the files of the one before are in its way.
        file::to_lines(self.0.path()).overwrite()
    }

    fn record(&self, number: u64) -> String {
        number.to_string()
    }

    async fn visible(&self) -> Result<Vec<u64>, BoxError> {
        lines(self.0.path(), |name| !name.starts_with('.'))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_sink_conforms() {
    two_phase_commit_suite(&Files(TempDir::new().unwrap())).await.assert();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sink_of_the_example_conforms() {
    let report = with(Mistake::None).await;
    report.assert();
    assert_eq!(report.checks.len(), 18);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_is_found() {
    for (mistake, check) in [
        (Mistake::ShowsRecordsAtTheBarrier, "nothing is visible before the commit"),
        (Mistake::BelievesThatWhatIsGoneIsCommitted, "a commit does not claim what is gone"),
        (Mistake::LeavesTransactionsBehind, "recovery leaves nothing behind"),
        (Mistake::SweepsWhatIsOthers, "recovery leaves other jobs alone"),
        (Mistake::FailsTheSecondCommit, "committing again changes nothing"),
    ] {
        let report = with(mistake).await;
        let failed: Vec<_> =
            report.checks.iter().filter(|c| c.outcome.is_err()).map(|c| c.name.as_str()).collect();
        assert!(failed.contains(&check), "{mistake:?} was not found by `{check}`, but by {failed:?}");
    }
}

async fn with(mistake: Mistake) -> Report {
    two_phase_commit_suite(&Spooled { dir: TempDir::new().unwrap(), mistake }).await
}

struct Spooled {
    dir: TempDir,
    mistake: Mistake,
}

impl SinkUnderTest for Spooled {
    type Sink = Careless;
    type Record = String;

    fn sink(&self) -> Careless {
        Careless {
            dir: self.dir.path().to_owned(),
            spool: Spool(self.dir.path().to_owned()),
            mistake: self.mistake,
        }
    }

    fn record(&self, number: u64) -> String {
        format!("{number}\n")
    }

    async fn visible(&self) -> Result<Vec<u64>, BoxError> {
        lines(self.dir.path(), |name| !name.ends_with(".open"))
    }

    async fn in_doubt(&self) -> Result<Option<usize>, BoxError> {
        Ok(Some(names(self.dir.path())?.iter().filter(|name| name.ends_with(".open")).count()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    ShowsRecordsAtTheBarrier,
    BelievesThatWhatIsGoneIsCommitted,
    LeavesTransactionsBehind,
    SweepsWhatIsOthers,
    FailsTheSecondCommit,
}

/// The example's sink, with a mistake.
#[derive(Clone)]
struct Careless {
    dir: std::path::PathBuf,
    spool: Spool,
    mistake: Mistake,
}

impl TwoPhaseCommit for Careless {
    type Record = String;
    type Live = <Spool as TwoPhaseCommit>::Live;
    type Handle = Prepared;

    async fn begin(&self, transaction: &Transaction<'_>) -> Result<Self::Live, BoxError> {
        self.spool.begin(transaction).await
    }

    async fn write(&self, live: &mut Self::Live, records: &[String]) -> Result<(), BoxError> {
        self.spool.write(live, records).await
    }

    async fn pre_commit(&self, live: Self::Live) -> Result<Prepared, BoxError> {
        let handle = self.spool.pre_commit(live).await?;
        if self.mistake == Mistake::ShowsRecordsAtTheBarrier {
            self.spool.commit(&handle).await?;
        }
        Ok(handle)
    }

    async fn commit(&self, handle: &Prepared) -> Result<Committed, CommitError> {
        match (self.spool.commit(handle).await, self.mistake) {
            (Err(CommitError::Lost(_)), Mistake::BelievesThatWhatIsGoneIsCommitted) => Ok(Committed::Already),
            (Ok(Committed::Already), Mistake::FailsTheSecondCommit) => {
                Err(CommitError::Lost("it is not there any more".into()))
            }
            (outcome, _) => outcome,
        }
    }

    async fn abort(&self, handle: &Prepared) -> Result<(), BoxError> {
        self.spool.abort(handle).await
    }

    async fn recover(&self, cx: &SinkContext) -> Result<(), BoxError> {
        match self.mistake {
            Mistake::LeavesTransactionsBehind => Ok(()),
            Mistake::SweepsWhatIsOthers => {
                for name in names(&self.dir)?.iter().filter(|name| name.ends_with(".open")) {
                    fs::remove_file(self.dir.join(name))?;
                }
                Ok(())
            }
            _ => self.spool.recover(cx).await,
        }
    }
}
