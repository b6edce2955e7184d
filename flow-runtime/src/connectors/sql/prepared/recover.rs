//! What happens when a job starts: connect, prepare, check, take over, commit what the checkpoint carried, roll back the
//! rest.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    PreparedTransaction, check, control::Control, handle::Marker, marker, owner::Owner, settle, sweep,
};
use crate::{
    connectors::sql::{
        connection::Connection,
        error::{Class, SqlError, classify},
        ledger,
        recover::{self, connect, told},
        retry::Backoff,
        sink::Setup,
        url::DatabaseUrl,
        work::Work,
    },
    error::BoxError,
    failpoint::{Point, reach},
    sink::{CommitError, Recovered, SinkContext},
};

/// How long it waits for locks that an earlier attempt, perhaps half dead, still holds, or for a server that restarts.
const PATIENCE: Duration = Duration::from_secs(60);

pub(in crate::connectors::sql) async fn recover<W: Work>(
    setup: &Setup<W>,
    cx: &SinkContext,
    handles: &[Recovered<PreparedTransaction>],
) -> Result<(), BoxError> {
    let owner = Owner::new(cx);
    check::backend(&setup.url).map_err(|error| told(cx, error))?;
    let mut connection = connect(setup, cx).await?;
    let told = |error: SqlError| told(cx, error);
    check::server(&mut connection, cx.parallelism).await.map_err(told)?;
    ledger::check_names(&owner.job, &owner.sink).map_err(told)?;
    marker::create(&mut connection).await.map_err(told)?;
    recover::settle(&mut connection).await.map_err(told)?;
    let control = Control::on(connection, &setup.url).await.map_err(told)?;
    let mut recovery = Recovery { url: &setup.url, cx, owner: &owner, control: Some(control) };
    recovery.again(Step::TakeOver).await?;
    reach(Point::PreparedTakenOver);
    recovery.commit(handles).await?;
    reach(Point::PreparedSettled);
    recovery.again(Step::Clean).await?;
    check::probe(&setup.url, &owner, recovery.control).await.map_err(told)
}

#[derive(Clone, Copy)]
enum Step {
    TakeOver,
    Clean,
}

struct Recovery<'a> {
    url: &'a DatabaseUrl,
    cx: &'a SinkContext,
    owner: &'a Owner,
    /// `None` after a failure.
    control: Option<Control>,
}

impl Recovery<'_> {
    async fn control(&mut self) -> Result<Control, SqlError> {
        match self.control.take() {
            Some(control) => Ok(control),
            None => Control::open(self.url).await,
        }
    }

    /// Does a step, again and again as long as that may help.
    async fn again(&mut self, step: Step) -> Result<(), BoxError> {
        let deadline = Instant::now() + PATIENCE;
        let mut backoff = Backoff::new();
        loop {
            let Err(error) = self.once(step).await else { return Ok(()) };
            if classify(&error) == Class::Permanent || Instant::now() >= deadline {
                return Err(told(self.cx, error));
            }
            tracing::warn!(sink = self.cx.operator, %error, "cannot take over yet");
            backoff.wait().await;
        }
    }

    async fn once(&mut self, step: Step) -> Result<(), SqlError> {
        let mut control = self.control().await?;
        match step {
            Step::TakeOver => take_over(&mut control, self.cx, self.owner).await?,
            Step::Clean => clean(&mut control, self.cx, self.owner).await?,
        }
        self.control = Some(control);
        Ok(())
    }

    /// Commits what the checkpoint carried, in order.
    async fn commit(&mut self, handles: &[Recovered<PreparedTransaction>]) -> Result<(), BoxError> {
        for Recovered { subtask, checkpoint, handle } in handles {
            let deadline = Instant::now() + PATIENCE;
            let mut backoff = Backoff::new();
            loop {
                let outcome = match self.control().await {
                    Err(error) => Err(CommitError::Retry(told(self.cx, error))),
                    Ok(mut control) => {
                        let outcome = settle::commit(&mut control, handle).await;
                        self.control = outcome.is_ok().then_some(control);
                        outcome
                    }
                };
                match outcome {
                    Ok(committed) => {
                        tracing::info!(
                            sink = self.cx.operator, subtask, %checkpoint, rows = handle.rows(),
                            "{committed} what the checkpoint carried"
                        );
                        break;
                    }
                    Err(CommitError::Retry(error)) if Instant::now() < deadline => {
                        tracing::warn!(%error, "committing again");
                        backoff.wait().await;
                    }
                    Err(CommitError::Retry(error) | CommitError::Lost(error)) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// Makes this attempt the owner, unless it starts before what is committed.
async fn take_over(control: &mut Control, cx: &SinkContext, owner: &Owner) -> Result<(), SqlError> {
    check_markers(&mut control.connection, cx, owner).await?;
    marker::take_over(&mut control.connection, owner).await
}

async fn check_markers(connection: &mut Connection, cx: &SinkContext, owner: &Owner) -> Result<(), SqlError> {
    let Owner { job, sink, attempt } = owner;
    let entries = marker::entries(connection, job, sink).await?;
    let attempt = attempt.cast_signed();
    if entries.iter().any(|entry| entry.attempt == attempt) {
        // Another process of this attempt was here first, and its subtasks may have gone on already.
        return Ok(());
    }
    marker::fits(connection.backend(), owner, &entries, cx.restored).map_err(SqlError::Setup)
}

/// Rolls back everything else of this sink, and forgets markers that tell nothing any more.
async fn clean(control: &mut Control, cx: &SinkContext, owner: &Owner) -> Result<(), SqlError> {
    sweep::sweep(control, owner).await?;
    // An earlier attempt that is still alive may have committed one more since.
    let Owner { job, sink, .. } = owner;
    let entries = marker::entries(&mut control.connection, job, sink).await?;
    let own = owner.attempt.cast_signed();
    let of_others: Vec<_> = entries.iter().copied().filter(|entry| entry.attempt != own).collect();
    marker::fits(control.connection.backend(), owner, &of_others, cx.restored).map_err(SqlError::Setup)?;
    for (entry, next) in entries.iter().zip(entries.iter().skip(1)) {
        if entry.subtask >= 0 && entry.subtask == next.subtask {
            let subtask = entry.subtask as usize;
            let newest = Marker::new(owner, subtask, next.epoch.cast_unsigned());
            marker::forget(&mut control.connection, &newest).await?;
        }
    }
    Ok(())
}
