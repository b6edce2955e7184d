//! One epoch of one subtask, applied in one transaction.

use super::{
    connection::Connection,
    error::{Class, Fault, SqlError},
    handle::Staged,
    ledger::{self, Owner, Verdict},
    transaction::Transaction,
    work::{Failure, How, Work},
};
use crate::{
    checkpoint::CheckpointId,
    error::BoxError,
    failpoint::{Point, reach},
    sink::{CommitError, Committed},
};

/// How the attempt to apply an epoch ended.
#[derive(Debug)]
pub(super) enum Applied {
    Yes(Committed),
    /// The ledger forbids it.
    Refused(String),
    /// The database did not do it, or did not say that it did.
    Failed(Fault, Class),
}

/// Applies the rows and the step in the ledger, or finds that it was done already. Whatever fails rolls all of it back,
/// so the same call may come again; an end that nobody heard of is settled by the ledger then. The connection comes back
/// if it is still good.
pub(super) async fn apply<W: Work>(
    mut connection: Connection,
    owner: &Owner,
    work: &W,
    subtask: usize,
    checkpoint: CheckpointId,
    staged: &Staged,
) -> (Option<Connection>, Applied) {
    let _turn = connection.turn().await;
    if let Err(error) = connection.begin().await {
        // It is not worth knowing in which state it is.
        return (None, failed(SqlError::from(error).into()));
    }
    match ledger::advance(&mut connection, owner, subtask, staged.previous, checkpoint).await {
        Ok(true) => reach(Point::LedgerAdvanced),
        Ok(false) => {
            let entry = ledger::entry(&mut connection, owner, subtask).await;
            let connection = connection.rolled_back().await;
            let applied = match entry {
                Err(error) => failed(SqlError::from(error).into()),
                Ok(entry) => match ledger::judge(owner, subtask, entry, staged.previous, checkpoint) {
                    Verdict::Applied => Applied::Yes(Committed::Already),
                    Verdict::Refused(why) => Applied::Refused(why),
                },
            };
            return (connection, applied);
        }
        Err(error) => return undo(connection, error.into()).await,
    }
    let mut tx = Transaction { connection };
    let written = work.apply(&mut tx, staged, How::Batched).await;
    let mut connection = tx.connection;
    if let Err(Failure(fault)) = written {
        return match undo(connection, fault).await {
            (Some(connection), Applied::Failed(fault, Class::Permanent)) => {
                find_row(connection, work, staged, fault).await
            }
            other => other,
        };
    }
    if W::FOREIGN {
        match ledger::stands(&mut connection, owner, subtask, checkpoint).await {
            Ok(true) => {}
            Ok(false) => {
                let why = format!(
                    "{} has ended the transaction that it was given, or went on after an error that ended it: neither commit nor roll back in it, and return its errors",
                    work.place()
                );
                let _ = connection.rolled_back().await;
                return (None, Applied::Refused(why));
            }
            Err(error) => return undo(connection, SqlError::from(error).into()).await,
        }
    }
    reach(Point::LedgerRowsWritten);
    match connection.commit().await {
        Ok(()) => {
            reach(Point::LedgerCommitted);
            (Some(connection), Applied::Yes(Committed::Now))
        }
        // Whether the server still did it, the ledger will tell; the old connection would not.
        Err(error) => (None, failed(SqlError::from(error).into())),
    }
}

/// Writes rows without a ledger: at least once.
pub(super) async fn write<W: Work>(
    mut connection: Connection,
    work: &W,
    staged: &Staged,
) -> (Option<Connection>, Result<(), (Fault, Class)>) {
    let _turn = connection.turn().await;
    if let Err(error) = connection.begin().await {
        let fault = Fault::from(error);
        let class = fault.class();
        return (None, Err((fault, class)));
    }
    let mut tx = Transaction { connection };
    let written = work.apply(&mut tx, staged, How::Batched).await;
    let mut connection = tx.connection;
    let fault = match written {
        Ok(()) => match connection.commit().await {
            Ok(()) => return (Some(connection), Ok(())),
            Err(error) => {
                let fault = Fault::from(error);
                let class = fault.class();
                return (None, Err((fault, class)));
            }
        },
        Err(Failure(fault)) => fault,
    };
    match undo(connection, fault).await {
        (Some(connection), Applied::Failed(fault, Class::Permanent)) => {
            let (connection, applied) = find_row(connection, work, staged, fault).await;
            match applied {
                Applied::Failed(fault, class) => (connection, Err((fault, class))),
                _ => (connection, Ok(())),
            }
        }
        (connection, Applied::Failed(fault, class)) => (connection, Err((fault, class))),
        (connection, _) => (connection, Ok(())),
    }
}

fn failed(fault: Fault) -> Applied {
    let class = fault.class();
    Applied::Failed(fault, class)
}

/// Rolls back after a failure. Where that fails as well the connection is gone, and with it the meaning of the failure.
async fn undo(connection: Connection, fault: Fault) -> (Option<Connection>, Applied) {
    let class = fault.class();
    match connection.rolled_back().await {
        Some(connection) => (Some(connection), Applied::Failed(fault, class)),
        None if class == Class::Unclear => (None, Applied::Failed(fault, Class::Transient)),
        None => (None, Applied::Failed(fault, class)),
    }
}

/// By how much smaller batches get in the search for a row: it takes a round more for each time, and each round takes
/// up to so many statements.
const NARROWER: usize = 32;
/// More than it takes, unless rows are refused at random.
const ROUNDS: usize = 8;

/// A batch was refused for good: writes it again, in ever smaller batches and never to be committed, to tell which row
/// it is.
pub(super) async fn find_row<W: Work>(
    mut connection: Connection,
    work: &W,
    staged: &Staged,
    mut fault: Fault,
) -> (Option<Connection>, Applied) {
    let mut most = fault.rows.as_ref().map_or(0, ExactSizeIterator::len);
    for _ in 0..ROUNDS {
        // The closure's calls have effects that nobody expects twice; the batch must do.
        let from = match &fault.rows {
            Some(rows) if rows.len() > 1 && !W::FOREIGN => rows.start,
            _ => break,
        };
        most = (most / NARROWER).max(1);
        if connection.begin().await.is_err() {
            return (None, Applied::Failed(fault, Class::Permanent));
        }
        let mut tx = Transaction { connection };
        let found = work.apply(&mut tx, staged, How::Narrow { from, most }).await;
        let Some(again) = tx.connection.rolled_back().await else {
            return (None, Applied::Failed(fault, Class::Permanent));
        };
        connection = again;
        match found {
            Err(Failure(found)) if found.class() == Class::Permanent => fault = found,
            _ => break,
        }
    }
    (Some(connection), Applied::Failed(fault, Class::Permanent))
}

/// The whole story of a failure, in one line.
pub(super) fn tell(owner: &str, place: &str, rows: u64, fault: &Fault) -> BoxError {
    let which = match &fault.rows {
        Some(range) if range.len() == 1 => format!("row {} of {rows}: ", range.start + 1),
        Some(range) => format!("one of the rows {} to {} of {rows}: ", range.start + 1, range.end),
        None => String::new(),
    };
    format!("{owner}: {place}: {which}{}", fault.error).into()
}

/// A failure as the runtime wants it. `unclear` counts how often in a row a failure was of a kind that is not known.
pub(super) fn commit_error(class: Class, unclear: &mut u32, error: BoxError) -> CommitError {
    match class {
        Class::Transient => CommitError::Retry(error),
        Class::Unclear if *unclear < 5 => {
            *unclear += 1;
            CommitError::Retry(error)
        }
        Class::Unclear | Class::Permanent => CommitError::Lost(error),
    }
}
