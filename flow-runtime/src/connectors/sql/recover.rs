//! What happens when a job starts: connect, prepare, check, take over the ledger, apply what is pending.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    connection::Connection,
    epoch::{self, Applied, commit_error},
    error::{Class, Fault, SqlError, classify},
    handle::Staged,
    ledger::{self, Owner},
    retry::Backoff,
    sink::Setup,
    url::Backend,
    work::{Internal, Work},
};
use crate::{
    error::BoxError,
    sink::{CommitError, Recovered, SinkContext, Standing},
};

/// How long it waits for locks that an earlier attempt, perhaps half dead, still holds, or for a server that restarts.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sink in ledger mode.
pub(super) async fn ledger<W: Work>(
    setup: &Setup<W>,
    cx: &SinkContext,
    handles: &[Recovered<Staged>],
) -> Result<(), BoxError> {
    let owner = Owner::new(cx);
    let mut connection = connect(setup, cx).await?;
    ledger::create(&mut connection).await.map_err(|error| told(cx, error))?;
    take_over(setup, &mut connection, &owner, cx, handles).await?;
    apply(setup, connection, &owner, handles).await
}

/// Takes over the ledger and applies nothing.
pub(super) async fn take_ledger<W: Work>(
    setup: &Setup<W>,
    cx: &SinkContext,
    handles: &[Recovered<Staged>],
) -> Result<(), BoxError> {
    let mut connection = connect(setup, cx).await?;
    ledger::create(&mut connection).await.map_err(|error| told(cx, error))?;
    take_over(setup, &mut connection, &Owner::new(cx), cx, handles).await
}

/// What the ledger says of an epoch, whoever owns the rows.
pub(super) async fn standing<W: Work>(
    setup: &Setup<W>,
    cx: &SinkContext,
    transaction: &Recovered<Staged>,
) -> Result<Standing, BoxError> {
    let mut connection = Connection::open(&setup.url).await.map_err(|error| told(cx, error))?;
    if !ledger::exists(&mut connection).await.map_err(|error| told(cx, SqlError::from(error)))? {
        return Ok(Standing::Unknown);
    }
    let owner = Owner::new(cx);
    let entry = ledger::entry(&mut connection, &owner, transaction.subtask).await;
    settle(&mut connection).await?;
    let entry = entry.map_err(|error| told(cx, SqlError::from(error)))?;
    Ok(entry.map_or(Standing::Unknown, |entry| entry.standing(transaction.checkpoint)))
}

/// A sink without a ledger.
pub(super) async fn direct<W: Work>(setup: &Setup<W>, cx: &SinkContext) -> Result<(), BoxError> {
    connect(setup, cx).await.map(drop)
}

/// Connects, prepares and checks.
pub(super) async fn connect<W: Work>(setup: &Setup<W>, cx: &SinkContext) -> Result<Connection, BoxError> {
    let mut connection = Connection::open(&setup.url).await.map_err(|error| told(cx, error))?;
    {
        let _turn = connection.turn().await;
        for statement in &setup.prepare {
            connection
                .batch(statement)
                .await
                .map_err(|error| told(cx, format!("cannot run `{statement}`: {}", SqlError::from(error))))?;
        }
        settle(&mut connection).await?;
    }
    setup.work.check(&mut Internal(&mut connection)).await.map_err(|error| told(cx, error))?;
    settle(&mut connection).await?;
    Ok(connection)
}

/// Where there is no autocommit, even a read opens a transaction.
pub(super) async fn settle(connection: &mut Connection) -> Result<(), SqlError> {
    if connection.backend() == Backend::Mysql {
        connection.batch("COMMIT").await?;
    }
    Ok(())
}

pub(super) fn told(cx: &SinkContext, error: impl std::fmt::Display) -> BoxError {
    format!("sink `{}`: {error}", cx.operator).into()
}

/// In one transaction: either all rows are this attempt's, or none and it does not start.
async fn take_over<W: Work>(
    setup: &Setup<W>,
    connection: &mut Connection,
    owner: &Owner,
    cx: &SinkContext,
    handles: &[Recovered<Staged>],
) -> Result<(), BoxError> {
    let deadline = Instant::now() + PATIENCE;
    let mut backoff = Backoff::new();
    loop {
        let error = match try_take_over(connection, owner, cx, handles).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if classify(&error) == Class::Permanent || Instant::now() >= deadline {
            return Err(told(cx, error));
        }
        tracing::warn!(sink = cx.operator, %error, "cannot take over the ledger yet");
        backoff.wait().await;
        *connection = Connection::open(&setup.url).await.map_err(|error| told(cx, error))?;
    }
}

async fn try_take_over(
    connection: &mut Connection,
    owner: &Owner,
    cx: &SinkContext,
    handles: &[Recovered<Staged>],
) -> Result<(), SqlError> {
    let _turn = connection.turn().await;
    connection.begin().await?;
    // On an error the caller drops the connection, which rolls back.
    ledger::take_over(connection, owner, cx, handles).await?;
    connection.commit().await?;
    Ok(())
}

/// Applies what the checkpoint carried, under the subtasks that staged it.
async fn apply<W: Work>(
    setup: &Setup<W>,
    connection: Connection,
    owner: &Owner,
    handles: &[Recovered<Staged>],
) -> Result<(), BoxError> {
    let mut connection = Some(connection);
    for Recovered { subtask, checkpoint, handle } in handles {
        let deadline = Instant::now() + PATIENCE;
        let (mut backoff, mut unclear) = (Backoff::new(), 0);
        loop {
            let (fault, class) = match open(setup, connection.take()).await {
                Err(error) => (Fault::new(error), Class::Transient),
                Ok(open) => {
                    let (back, applied) =
                        epoch::apply(open, owner, &setup.work, *subtask, *checkpoint, handle).await;
                    connection = back;
                    match applied {
                        Applied::Yes(committed) => {
                            tracing::info!(
                                sink = owner.sink, subtask, %checkpoint, rows = handle.rows(),
                                "{committed} what the checkpoint carried"
                            );
                            break;
                        }
                        Applied::Refused(why) => return Err(why.into()),
                        Applied::Failed(fault, class) => (fault, class),
                    }
                }
            };
            let place = format!("sink `{}`, checkpoint {checkpoint}, subtask {subtask}", owner.sink);
            let error = epoch::tell(&place, &setup.work.place(), handle.rows(), &fault);
            match commit_error(class, &mut unclear, error) {
                CommitError::Retry(error) if Instant::now() < deadline => {
                    tracing::warn!(%error, "applying again");
                    backoff.wait().await;
                }
                CommitError::Retry(error) | CommitError::Lost(error) => return Err(error),
            }
        }
    }
    Ok(())
}

async fn open<W>(setup: &Setup<W>, connection: Option<Connection>) -> Result<Connection, SqlError> {
    match connection {
        Some(connection) => Ok(connection),
        None => Connection::open(&setup.url).await,
    }
}
