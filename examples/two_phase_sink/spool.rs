//! Files in a spool directory, by two-phase commit.

use std::{fs, io::Write, path::PathBuf};

use flow::{
    BoxError, TransactionHandle, TwoPhaseCommit,
    sink::{CommitError, Committed, InDoubt, Settlement, SinkContext, Standing, Transaction},
};

/// Each transaction is a file: `NAME.open` while it is written, `NAME` once it is committed.
#[derive(Clone)]
pub(crate) struct Spool(pub(crate) PathBuf);

/// The name is all it takes to commit a file.
#[derive(TransactionHandle)]
pub(crate) struct Prepared {
    name: String,
}

impl Spool {
    fn paths(&self, name: &str) -> (PathBuf, PathBuf) {
        (self.0.join(format!("{name}.open")), self.0.join(name))
    }
}

impl TwoPhaseCommit for Spool {
    type Record = String;
    type Live = (String, fs::File);
    type Handle = Prepared;

    async fn begin(&self, transaction: &Transaction<'_>) -> Result<Self::Live, BoxError> {
        let name = transaction.name();
        let file = fs::File::create_new(self.paths(&name).0)?;
        Ok((name, file))
    }

    async fn write(&self, (_, file): &mut Self::Live, records: &[String]) -> Result<(), BoxError> {
        Ok(file.write_all(records.concat().as_bytes())?)
    }

    async fn pre_commit(&self, (name, file): Self::Live) -> Result<Prepared, BoxError> {
        file.sync_all()?;
        fs::File::open(&self.0)?.sync_all()?;
        Ok(Prepared { name })
    }

    async fn commit(&self, Prepared { name }: &Prepared) -> Result<Committed, CommitError> {
        let (open, finished) = self.paths(name);
        match fs::rename(&open, &finished) {
            Ok(()) => Ok(Committed::Now),
            Err(_) if finished.exists() => Ok(Committed::Already),
            Err(error) if open.exists() => Err(CommitError::Retry(error.into())),
            Err(_) => Err(CommitError::Lost(format!("neither {open:?} nor {finished:?} exists").into())),
        }
    }

    async fn abort(&self, Prepared { name }: &Prepared) -> Result<(), BoxError> {
        let (open, _) = self.paths(name);
        if open.exists() { Ok(fs::remove_file(open)?) } else { Ok(()) }
    }

    async fn standing(&self, Prepared { name }: &Prepared) -> Result<Standing, BoxError> {
        let (open, finished) = self.paths(name);
        Ok(match (finished.exists(), open.exists()) {
            (true, _) => Standing::Committed,
            (false, true) => Standing::Pending,
            (false, false) => Standing::Unknown,
        })
    }

    async fn in_doubt(&self, cx: &SinkContext) -> Result<Vec<InDoubt>, BoxError> {
        let mut doubts = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            if let Some(id) = name.strip_suffix(".open").filter(|id| id.starts_with(&cx.namespace())) {
                doubts.push(InDoubt { id: id.to_owned(), detail: format!("the file {name}") });
            }
        }
        Ok(doubts)
    }

    async fn settle(
        &self,
        _: &SinkContext,
        transaction: &InDoubt,
        settlement: Settlement,
    ) -> Result<(), BoxError> {
        let (open, finished) = self.paths(&transaction.id);
        match settlement {
            Settlement::Commit => Ok(fs::rename(open, finished)?),
            Settlement::Abort => Ok(fs::remove_file(open)?),
        }
    }

    async fn recover(&self, cx: &SinkContext) -> Result<(), BoxError> {
        fs::create_dir_all(&self.0)?;
        for entry in fs::read_dir(&self.0)? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            if name.starts_with(&cx.namespace()) && name.ends_with(".open") {
                fs::remove_file(self.0.join(name))?;
            }
        }
        Ok(())
    }
}
