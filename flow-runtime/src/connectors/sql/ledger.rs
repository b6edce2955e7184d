//! The ledger: how far each subtask of each sink has come, in a table of the database that it writes to.
//!
//! A subtask's rows of an epoch and its step in the ledger are one transaction, so a row is there exactly when the
//! ledger says so. `attempt` is the run of the job that owns the rows: each run takes them over when it starts, and from
//! then on an earlier one, should it still be alive, commits nothing any more.

use diesel::{
    QueryResult, QueryableByName,
    sql_types::{BigInt, Text},
};
use diesel_async::RunQueryDsl;

use super::{
    connection::{Connection, each},
    error::SqlError,
    handle::Staged,
    identifier::quote_text,
    statement::{Part, Statement},
    url::Backend,
    value::Value,
};
use crate::{
    checkpoint::CheckpointId,
    sink::{Recovered, SinkContext, Standing},
};

/// The ledger's table.
pub(super) const TABLE: &str = "flow_ledger";
/// The longest name of a job or a sink that its key can hold in every database.
const LONGEST_NAME: usize = 255;

/// One sink of one job, in one attempt.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) job: String,
    pub(super) sink: String,
    /// As the column holds it.
    attempt: i64,
}

/// What the ledger says of one subtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, QueryableByName)]
pub(super) struct Entry {
    #[diesel(sql_type = BigInt)]
    subtask: i64,
    #[diesel(sql_type = BigInt)]
    epoch: i64,
    #[diesel(sql_type = BigInt)]
    attempt: i64,
}

/// What to do about rows for which the ledger did not move.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They are there already.
    Applied,
    /// They must not be applied, and this is why.
    Refused(String),
}

impl Owner {
    pub(super) fn new(cx: &SinkContext) -> Self {
        Owner { job: cx.job.clone(), sink: cx.operator.clone(), attempt: cx.attempt.cast_signed() }
    }

    fn params(&self) -> [Value<'_>; 2] {
        [Value::Text(&self.job), Value::Text(&self.sink)]
    }

    /// Where its rows are, for a person to copy.
    fn rows_of(&self, backend: Backend) -> String {
        let text = |text: &str| quote_text(backend, text);
        format!("job = {} AND sink = {}", text(&self.job), text(&self.sink))
    }
}

/// Makes the table if it is not there.
pub(super) async fn create(connection: &mut Connection) -> Result<(), SqlError> {
    create_table(connection, TABLE, "job, sink, subtask").await
}

/// Makes a table of epochs if it is not there. Existence is asked for first, because who may not create tables may still
/// be given one.
pub(super) async fn create_table(
    connection: &mut Connection,
    table: &str,
    key: &str,
) -> Result<(), SqlError> {
    let create = match connection.backend() {
        Backend::Sqlite => {
            format!(
                "CREATE TABLE IF NOT EXISTS {table} (job TEXT NOT NULL, sink TEXT NOT NULL, \
                 subtask INTEGER NOT NULL, epoch INTEGER NOT NULL, attempt INTEGER NOT NULL, \
                 PRIMARY KEY ({key}))"
            )
        }
        // Two that create the same table at once are an error in PostgreSQL, in spite of IF NOT EXISTS.
        Backend::Postgres => {
            format!(
                "BEGIN; SELECT pg_advisory_xact_lock(7163384699736); \
                 CREATE TABLE IF NOT EXISTS {table} (job text NOT NULL, sink text NOT NULL, \
                 subtask bigint NOT NULL, epoch bigint NOT NULL, attempt bigint NOT NULL, \
                 PRIMARY KEY ({key})); COMMIT"
            )
        }
        // Names that differ in case, or by an accent, are different names.
        Backend::Mysql => {
            format!(
                "CREATE TABLE IF NOT EXISTS {table} (\
                 job VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
                 sink VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
                 subtask BIGINT NOT NULL, epoch BIGINT NOT NULL, attempt BIGINT NOT NULL, \
                 PRIMARY KEY ({key})) ENGINE = InnoDB"
            )
        }
    };
    if !has_table(connection, table).await? {
        connection.batch(&create).await.map_err(|error| {
            SqlError::Setup(format!(
                "cannot create the table `{table}`, in which the sink notes how far it is: {}; create it by hand: {create}",
                SqlError::from(error)
            ))
        })?;
    }
    Ok(())
}

/// Whether the ledger is there.
pub(super) async fn exists(connection: &mut Connection) -> QueryResult<bool> {
    has_table(connection, TABLE).await
}

async fn has_table(connection: &mut Connection, table: &str) -> QueryResult<bool> {
    let query = match connection.backend() {
        Backend::Sqlite => {
            format!("SELECT name FROM sqlite_master WHERE type = 'table' AND name = '{table}'")
        }
        Backend::Postgres => {
            format!("SELECT CAST('{table}' AS text) AS name WHERE to_regclass('{table}') IS NOT NULL")
        }
        Backend::Mysql => format!(
            "SELECT table_name AS name FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name = '{table}'"
        ),
    };
    Ok(!names(connection, &query).await?.is_empty())
}

/// One column of names.
pub(super) async fn names(connection: &mut Connection, text: &str) -> QueryResult<Vec<String>> {
    #[derive(QueryableByName)]
    struct Name {
        #[diesel(sql_type = Text)]
        name: String,
    }
    let names: Vec<Name> = each!(connection, diesel => diesel::sql_query(text).load(diesel).await)?;
    Ok(names.into_iter().map(|name| name.name).collect())
}

/// All rows of a sink.
async fn entries(connection: &mut Connection, owner: &Owner) -> QueryResult<Vec<Entry>> {
    let (first, second) = if connection.backend() == Backend::Postgres { ("$1", "$2") } else { ("?", "?") };
    let text = format!(
        "SELECT subtask, epoch, attempt FROM {TABLE} WHERE job = {first} AND sink = {second} ORDER BY subtask"
    );
    each!(connection, diesel => diesel::sql_query(text)
        .bind::<Text, _>(&owner.job)
        .bind::<Text, _>(&owner.sink)
        .load(diesel)
        .await)
}

/// A subtask's row.
pub(super) async fn entry(
    connection: &mut Connection,
    owner: &Owner,
    subtask: usize,
) -> QueryResult<Option<Entry>> {
    let entries = entries(connection, owner).await?;
    Ok(entries.into_iter().find(|entry| entry.subtask == subtask as i64))
}

/// Moves a subtask's row on, if it stands where it must. Within a transaction it holds the row from then on.
pub(super) async fn advance(
    connection: &mut Connection,
    owner: &Owner,
    subtask: usize,
    from: u64,
    to: CheckpointId,
) -> Result<bool, SqlError> {
    let [job, sink] = owner.params();
    let statement = Statement::new(vec![
        Part::sql("UPDATE flow_ledger SET epoch = "),
        Part::Param(Value::Int(epoch(to.0)?)),
        Part::sql(" WHERE job = "),
        Part::Param(job),
        Part::sql(" AND sink = "),
        Part::Param(sink),
        Part::sql(" AND subtask = "),
        Part::Param(Value::Int(subtask as i64)),
        Part::sql(" AND epoch = "),
        Part::Param(Value::Int(epoch(from)?)),
        Part::sql(" AND attempt = "),
        Part::Param(Value::Int(owner.attempt)),
    ]);
    Ok(connection.run(statement).await? == 1)
}

/// As the column holds it.
pub(super) fn epoch(id: u64) -> Result<i64, SqlError> {
    i64::try_from(id).map_err(|_| SqlError::Setup(format!("there is no checkpoint {id}")))
}

/// Whether the row is as [`advance`] left it. A transaction that the closure, or a swallowed error, has ended is noticed
/// by this.
pub(super) async fn stands(
    connection: &mut Connection,
    owner: &Owner,
    subtask: usize,
    at: CheckpointId,
) -> QueryResult<bool> {
    let entry = entry(connection, owner, subtask).await?;
    Ok(entry.is_some_and(|e| e.attempt == owner.attempt && e.epoch.cast_unsigned() == at.0))
}

/// Whether the tables can hold the names.
pub(super) fn check_names(job: &str, sink: &str) -> Result<(), SqlError> {
    for (what, name) in [("job", job), ("sink", sink)] {
        if name.len() > LONGEST_NAME {
            return Err(SqlError::Setup(format!(
                "the name of the {what} is longer than the {LONGEST_NAME} bytes that the sink's table can hold: `{name}`"
            )));
        }
    }
    Ok(())
}

/// Takes over all rows of a sink for this attempt and adds those of new subtasks, or refuses because they do not fit
/// the checkpoint. In a transaction of the caller, who rolls back when refused.
pub(super) async fn take_over(
    connection: &mut Connection,
    owner: &Owner,
    cx: &SinkContext,
    handles: &[Recovered<Staged>],
) -> Result<(), SqlError> {
    check_names(&owner.job, &owner.sink)?;
    let before = entries(connection, owner).await?;
    if before.len() >= cx.parallelism && before.iter().all(|entry| entry.attempt == owner.attempt) {
        // Another process of this attempt was here first, and its subtasks may have moved on already.
        return Ok(());
    }
    let [job, sink] = owner.params();
    connection
        .run(Statement::new(vec![
            Part::sql("UPDATE flow_ledger SET attempt = "),
            Part::Param(Value::Int(owner.attempt)),
            Part::sql(" WHERE job = "),
            Part::Param(job),
            Part::sql(" AND sink = "),
            Part::Param(sink),
        ]))
        .await?;
    let entries = entries(connection, owner).await?;
    fits(connection.backend(), owner, &entries, cx.restored, handles).map_err(SqlError::Setup)?;
    for subtask in 0..cx.parallelism as i64 {
        if entries.iter().all(|entry| entry.subtask != subtask) {
            add(connection, owner, subtask).await?;
        }
    }
    Ok(())
}

/// If another run adds the same row at the same time one of the two owns it, and the other fails to open.
async fn add(connection: &mut Connection, owner: &Owner, subtask: i64) -> QueryResult<()> {
    let tail = match connection.backend() {
        Backend::Mysql => ") ON DUPLICATE KEY UPDATE subtask = VALUES(subtask)",
        _ => ") ON CONFLICT (job, sink, subtask) DO NOTHING",
    };
    let [job, sink] = owner.params();
    connection
        .run(Statement::new(vec![
            Part::sql("INSERT INTO flow_ledger (job, sink, subtask, epoch, attempt) VALUES ("),
            Part::Param(job),
            Part::sql(", "),
            Part::Param(sink),
            Part::sql(", "),
            Part::Param(Value::Int(subtask)),
            Part::sql(", 0, "),
            Part::Param(Value::Int(owner.attempt)),
            Part::sql(tail),
        ]))
        .await?;
    Ok(())
}

/// Whether a job that starts from a checkpoint can go on with this ledger.
///
/// Ahead of the checkpoint it must not be: the epochs between would be made again and taken for applied. And a handle
/// without a row tells nothing about whether it was applied.
fn fits(
    backend: Backend,
    owner: &Owner,
    entries: &[Entry],
    restored: Option<CheckpointId>,
    handles: &[Recovered<Staged>],
) -> Result<(), String> {
    let Owner { job, sink, .. } = owner;
    let rows = owner.rows_of(backend);
    let newest = entries.iter().map(|entry| entry.epoch.cast_unsigned()).max().unwrap_or(0);
    let start = restored.unwrap_or_default();
    if newest > start.0 {
        let (from, sql) = match restored {
            Some(restored) => (
                format!("checkpoint {restored}"),
                format!("UPDATE {TABLE} SET epoch = {restored} WHERE {rows} AND epoch > {restored}"),
            ),
            None => ("no checkpoint".to_owned(), format!("DELETE FROM {TABLE} WHERE {rows}")),
        };
        return Err(format!(
            "sink `{sink}` of job `{job}` has written up to checkpoint {newest}, as the table `{TABLE}` says, but the job starts from {from}: what it writes until then would be skipped. restore checkpoint {newest}, or give the job another name, or, to write it a second time, run: {sql}"
        ));
    }
    for handle in handles {
        if entries.iter().all(|entry| entry.subtask != handle.subtask as i64) {
            let Recovered { subtask, checkpoint, handle } = handle;
            let insert = |epoch: u64| {
                let text = |text: &str| quote_text(backend, text);
                format!(
                    "INSERT INTO {TABLE} (job, sink, subtask, epoch, attempt) VALUES ({}, {}, {subtask}, {epoch}, 0)",
                    text(job),
                    text(sink)
                )
            };
            return Err(format!(
                "sink `{sink}` of job `{job}`: checkpoint {start} holds {} rows of subtask {subtask} that may or may not be written, and the table `{TABLE}`, which knows, has no entry for it: is this another database than before? to write them, run: {}; to leave them out: {}",
                handle.rows(),
                insert(handle.previous),
                insert(checkpoint.0)
            ));
        }
    }
    Ok(())
}

/// What it means that [`advance`] moved nothing.
pub(super) fn judge(
    owner: &Owner,
    subtask: usize,
    entry: Option<Entry>,
    from: u64,
    to: CheckpointId,
) -> Verdict {
    let Owner { job, sink, attempt } = owner;
    let place = format!("sink `{sink}` of job `{job}`, subtask {subtask}");
    match entry {
        None => Verdict::Refused(format!(
            "{place}: its row in the table `{TABLE}` is gone, so nobody knows what is written; stop the job, and start it again"
        )),
        Some(entry) if entry.attempt != *attempt => Verdict::Refused(format!(
            "{place}: another copy of this job has started and taken over, so this one must not write any more; if both are meant to run, give them different names"
        )),
        Some(entry) if entry.epoch.cast_unsigned() >= to.0 => Verdict::Applied,
        Some(entry) => Verdict::Refused(format!(
            "{place}: the rows of checkpoint {to} follow those of checkpoint {from}, but the table `{TABLE}` says that checkpoint {} was the last: was the database restored from a backup? the checkpoints between are lost to it",
            entry.epoch
        )),
    }
}

impl Entry {
    /// Whether an epoch is applied.
    pub(super) fn standing(&self, checkpoint: CheckpointId) -> Standing {
        if self.epoch.cast_unsigned() >= checkpoint.0 { Standing::Committed } else { Standing::Pending }
    }

    /// Where the row stands, if it belongs to this attempt.
    pub(super) fn epoch_for(&self, owner: &Owner) -> Option<u64> {
        (self.attempt == owner.attempt).then_some(self.epoch.cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner { job: "it's".into(), sink: "counts.sink".into(), attempt: 7 }
    }

    fn entry(subtask: i64, epoch: i64, attempt: i64) -> Entry {
        Entry { subtask, epoch, attempt }
    }

    #[test]
    fn a_ledger_that_did_not_move_is_judged() {
        let judge = |entry| judge(&owner(), 0, entry, 3, CheckpointId(5));
        assert_eq!(judge(Some(entry(0, 5, 7))), Verdict::Applied);
        assert_eq!(judge(Some(entry(0, 6, 7))), Verdict::Applied);
        let refused = |entry| match judge(entry) {
            Verdict::Refused(why) => why,
            Verdict::Applied => panic!("applied"),
        };
        assert!(refused(Some(entry(0, 5, 8))).contains("another copy"));
        assert!(refused(Some(entry(0, 2, 7))).contains("backup"));
        assert!(refused(None).contains("gone"));
    }

    #[test]
    fn a_ledger_ahead_is_refused_with_a_way_out() {
        let fits = |entries: &[Entry], restored: Option<u64>| {
            fits(Backend::Postgres, &owner(), entries, restored.map(CheckpointId), &[])
        };
        assert_eq!(fits(&[], None), Ok(()));
        assert_eq!(fits(&[entry(0, 0, 1)], None), Ok(()));
        assert_eq!(fits(&[entry(0, 4, 1), entry(1, 5, 1)], Some(5)), Ok(()));
        let why = fits(&[entry(0, 4, 1), entry(1, 6, 1)], Some(5)).unwrap_err();
        assert!(
            why.contains("up to checkpoint 6") && why.contains("SET epoch = 5 WHERE job = 'it''s'"),
            "{why}"
        );
        let why = fits(&[entry(0, 6, 1)], None).unwrap_err();
        assert!(
            why.contains("DELETE FROM flow_ledger WHERE job = 'it''s' AND sink = 'counts.sink'"),
            "{why}"
        );
    }

    #[test]
    fn a_handle_without_a_row_is_refused() {
        let handles = [Recovered { subtask: 2, checkpoint: CheckpointId(5), handle: Staged::default() }];
        let fits =
            |entries: &[Entry]| fits(Backend::Mysql, &owner(), entries, Some(CheckpointId(5)), &handles);
        assert_eq!(fits(&[entry(2, 4, 1)]), Ok(()));
        let why = fits(&[entry(0, 4, 1)]).unwrap_err();
        assert!(why.contains("subtask 2") && why.contains("another database"), "{why}");
    }
}
