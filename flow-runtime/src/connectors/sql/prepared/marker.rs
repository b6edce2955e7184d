//! The markers: which epochs of prepared transactions are committed, in a table of the database itself.
//!
//! Each transaction inserts a row of its own, so a committed transaction has left its marker, and one that was lost has
//! not. One row per subtask, moved from epoch to epoch, would make each transaction wait for the commit of the one before.
//! The key has no attempt in it: of two attempts that wrote the same epoch of a subtask only one can commit.
//!
//! The row of subtask -1 is no marker: it names the attempt that owns the sink. An earlier one prepares nothing any more.

use diesel::{
    QueryResult, QueryableByName,
    sql_types::{BigInt, Text},
};
use diesel_async::RunQueryDsl;

use super::{handle::Marker, owner::Owner};
use crate::{
    checkpoint::CheckpointId,
    connectors::sql::{
        connection::{Connection, each},
        error::SqlError,
        identifier::quote_text,
        ledger,
        statement::{Part, Statement},
        url::Backend,
        value::Value,
    },
};

/// Their table.
pub(super) const TABLE: &str = "flow_transactions";
/// The subtask under which the owner is noted.
const OWNER: i64 = -1;
/// And the one of the transaction that tries, at the start, whether all of this works.
pub(super) const PROBE: i64 = -2;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, QueryableByName)]
pub(super) struct Entry {
    #[diesel(sql_type = BigInt)]
    pub(super) subtask: i64,
    #[diesel(sql_type = BigInt)]
    pub(super) epoch: i64,
    #[diesel(sql_type = BigInt)]
    pub(super) attempt: i64,
}

/// What the markers say of a transaction that is not prepared any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Committed,
    /// Its epoch was committed by this attempt instead.
    Other(i64),
    /// Neither it nor a later one of its subtask.
    Nothing,
}

/// Makes the table if it is not there.
pub(super) async fn create(connection: &mut Connection) -> Result<(), SqlError> {
    ledger::create_table(connection, TABLE, "job, sink, subtask, epoch").await
}

/// Inserts the marker of a transaction into it, if the attempt still owns the sink; tells whether it does. What it reads
/// it does not lock.
pub(super) async fn insert(
    connection: &mut Connection,
    owner: &Owner,
    subtask: i64,
    epoch: u64,
) -> Result<bool, SqlError> {
    let epoch = Value::Int(ledger::epoch(epoch)?);
    let attempt = Value::Int(owner.attempt.cast_signed());
    let statement = Statement::new(vec![
        Part::sql("INSERT INTO flow_transactions (job, sink, subtask, epoch, attempt) SELECT job, sink, "),
        Part::Param(Value::Int(subtask)),
        Part::sql(", "),
        Part::Param(epoch),
        Part::sql(", attempt FROM flow_transactions WHERE job = "),
        Part::Param(Value::Text(&owner.job)),
        Part::sql(" AND sink = "),
        Part::Param(Value::Text(&owner.sink)),
        Part::sql(" AND subtask = -1 AND epoch = 0 AND attempt = "),
        Part::Param(attempt),
    ]);
    Ok(connection.run(statement).await? == 1)
}

/// Makes the attempt the owner of the sink.
pub(super) async fn take_over(connection: &mut Connection, owner: &Owner) -> Result<(), SqlError> {
    let tail = match connection.backend() {
        Backend::Mysql => ") ON DUPLICATE KEY UPDATE attempt = VALUES(attempt)",
        _ => ") ON CONFLICT (job, sink, subtask, epoch) DO UPDATE SET attempt = excluded.attempt",
    };
    connection
        .run(Statement::new(vec![
            Part::sql("INSERT INTO flow_transactions (job, sink, subtask, epoch, attempt) VALUES ("),
            Part::Param(Value::Text(&owner.job)),
            Part::sql(", "),
            Part::Param(Value::Text(&owner.sink)),
            Part::sql(", -1, 0, "),
            Part::Param(Value::Int(owner.attempt.cast_signed())),
            Part::sql(tail),
        ]))
        .await?;
    Ok(())
}

/// All rows of a sink.
pub(super) async fn entries(connection: &mut Connection, job: &str, sink: &str) -> QueryResult<Vec<Entry>> {
    let (first, second) = if connection.backend() == Backend::Postgres { ("$1", "$2") } else { ("?", "?") };
    let text = format!(
        "SELECT subtask, epoch, attempt FROM {TABLE} WHERE job = {first} AND sink = {second} ORDER BY subtask, epoch"
    );
    each!(connection, diesel => diesel::sql_query(text)
        .bind::<Text, _>(job)
        .bind::<Text, _>(sink)
        .load(diesel)
        .await)
}

/// Whether the attempt still owns the sink.
pub(super) async fn owned(connection: &mut Connection, owner: &Owner) -> QueryResult<bool> {
    let entries = entries(connection, &owner.job, &owner.sink).await?;
    Ok(entries.iter().any(|e| e.subtask == OWNER && e.attempt == owner.attempt.cast_signed()))
}

/// Whether a transaction that is not prepared any more was committed.
pub(super) async fn find(connection: &mut Connection, marker: &Marker) -> QueryResult<Found> {
    Ok(judge(&entries(connection, &marker.job, &marker.sink).await?, marker))
}

/// Older markers are deleted: epochs of a subtask are committed in order, so a later one tells of all before it.
fn judge(entries: &[Entry], marker: &Marker) -> Found {
    let of_subtask = entries.iter().filter(|e| e.subtask == marker.subtask as i64);
    let mut found = Found::Nothing;
    for entry in of_subtask {
        match entry.epoch.cast_unsigned().cmp(&marker.epoch) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal if entry.attempt != marker.attempt.cast_signed() => {
                return Found::Other(entry.attempt);
            }
            _ => found = Found::Committed,
        }
    }
    found
}

/// Deletes a subtask's markers before that of its newest committed epoch.
pub(super) async fn forget(connection: &mut Connection, newest: &Marker) -> Result<(), SqlError> {
    connection
        .run(Statement::new(vec![
            Part::sql("DELETE FROM flow_transactions WHERE job = "),
            Part::Param(Value::Text(&newest.job)),
            Part::sql(" AND sink = "),
            Part::Param(Value::Text(&newest.sink)),
            Part::sql(" AND subtask = "),
            Part::Param(Value::Int(newest.subtask as i64)),
            Part::sql(" AND epoch < "),
            Part::Param(Value::Int(ledger::epoch(newest.epoch)?)),
        ]))
        .await?;
    Ok(())
}

/// Whether a job that starts from a checkpoint can go on: markers ahead of it tell of rows that it would write again.
pub(super) fn fits(
    backend: Backend,
    owner: &Owner,
    entries: &[Entry],
    restored: Option<CheckpointId>,
) -> Result<(), String> {
    let newest = entries.iter().filter(|e| e.subtask >= 0).map(|e| e.epoch.cast_unsigned()).max();
    let (newest, start) = (newest.unwrap_or(0), restored.unwrap_or_default());
    if newest <= start.0 {
        return Ok(());
    }
    let Owner { job, sink, .. } = owner;
    let rows = rows_of(backend, job, sink);
    let (from, sql) = match restored {
        Some(restored) => (
            format!("checkpoint {restored}"),
            format!("DELETE FROM {TABLE} WHERE {rows} AND subtask >= 0 AND epoch > {restored}"),
        ),
        None => ("no checkpoint".to_owned(), format!("DELETE FROM {TABLE} WHERE {rows}")),
    };
    Err(format!(
        "sink `{sink}` of job `{job}` has committed up to checkpoint {newest}, as the table `{TABLE}` says, but the job starts from {from}: what it writes until then would be there twice. restore checkpoint {newest}, or give the job another name, or, to write it a second time, run: {sql}"
    ))
}

/// Where a sink's rows are, for a person to copy.
fn rows_of(backend: Backend, job: &str, sink: &str) -> String {
    format!("job = {} AND sink = {}", quote_text(backend, job), quote_text(backend, sink))
}

/// What makes a lost transaction pass for a committed one.
pub(super) fn forgive(backend: Backend, marker: &Marker) -> String {
    let Marker { job, sink, subtask, epoch, attempt } = marker;
    format!(
        "INSERT INTO {TABLE} (job, sink, subtask, epoch, attempt) VALUES ({}, {}, {subtask}, {epoch}, {})",
        quote_text(backend, job),
        quote_text(backend, sink),
        attempt.cast_signed()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(subtask: i64, epoch: i64, attempt: i64) -> Entry {
        Entry { subtask, epoch, attempt }
    }

    fn marker(subtask: usize, epoch: u64) -> Marker {
        Marker { job: "it's".into(), sink: "s".into(), subtask, epoch, attempt: 7 }
    }

    #[test]
    fn a_marker_tells_committed_from_lost() {
        let entries = [entry(-1, 0, 7), entry(0, 4, 6), entry(0, 5, 7), entry(1, 9, 7)];
        assert_eq!(judge(&entries, &marker(0, 5)), Found::Committed);
        assert_eq!(judge(&entries, &marker(0, 3)), Found::Committed);
        assert_eq!(judge(&entries, &marker(0, 4)), Found::Other(6));
        assert_eq!(judge(&entries, &marker(0, 6)), Found::Nothing);
        assert_eq!(judge(&entries, &marker(1, 8)), Found::Committed);
        assert_eq!(judge(&entries, &marker(2, 1)), Found::Nothing);
        assert_eq!(judge(&[], &marker(0, 1)), Found::Nothing);
    }

    #[test]
    fn markers_ahead_are_refused_with_a_way_out() {
        let owner = Owner { job: "it's".into(), sink: "s".into(), attempt: 7 };
        let fits = |entries: &[Entry], restored: Option<u64>| {
            fits(Backend::Postgres, &owner, entries, restored.map(CheckpointId))
        };
        assert_eq!(fits(&[], None), Ok(()));
        assert_eq!(fits(&[entry(-1, 0, 3)], None), Ok(()));
        assert_eq!(fits(&[entry(0, 5, 3)], Some(5)), Ok(()));
        let why = fits(&[entry(0, 4, 3), entry(1, 6, 3)], Some(5)).unwrap_err();
        assert!(why.contains("up to checkpoint 6") && why.contains("epoch > 5"), "{why}");
        let why = fits(&[entry(0, 6, 1)], None).unwrap_err();
        assert!(why.contains("DELETE FROM flow_transactions WHERE job = 'it''s' AND sink = 's'"), "{why}");
    }
}
