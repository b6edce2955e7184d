//! SQLite: blocking, off the async workers; one writer at a time.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use diesel::{
    QueryResult, RunQueryDsl as _, SqliteConnection,
    connection::{AnsiTransactionManager, SimpleConnection, TransactionManager},
};
use diesel_async::{AsyncConnection as _, sync_connection_wrapper::SyncConnectionWrapper};
use tokio::sync::Mutex as Turn;

use super::{
    each_row::CHUNK,
    error::{Fault, SqlError},
    handle::Staged,
    placeholder::Template,
    statement::Statement,
    table::Table,
    transaction::bind,
    value::Value,
    work::How,
};

pub(super) struct Sqlite {
    pub(super) diesel: SyncConnectionWrapper<SqliteConnection>,
    pub(super) turn: Arc<Turn<()>>,
}

/// `FULL`: in WAL mode anything less may forget the last commits when the power goes, while the checkpoints still say
/// that they were made. The timeout is for other processes; those of this one take turns.
const SETUP: &str = "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";

impl Sqlite {
    pub(super) async fn open(path: &str) -> Result<Self, String> {
        let mut diesel = SyncConnectionWrapper::<SqliteConnection>::establish(path)
            .await
            .map_err(|error| format!("{error}; does the folder exist, and may it be written to?"))?;
        // Several may open the file at once, and only one can switch it to WAL.
        let turn = turn_of(path);
        {
            let _turn = turn.lock().await;
            diesel.spawn_blocking(|c| c.batch_execute(SETUP)).await.map_err(|error| error.to_string())?;
        }
        Ok(Sqlite { diesel, turn })
    }

    /// `IMMEDIATE`: a transaction that reads first and becomes a writer later fails at once when another has written
    /// meanwhile, whatever the timeout.
    pub(super) async fn begin(&mut self) -> QueryResult<()> {
        self.diesel
            .spawn_blocking(|c| AnsiTransactionManager::begin_transaction_sql(c, "BEGIN IMMEDIATE"))
            .await
    }

    /// Runs a statement for each row. A visit to the blocking thread for each would take longer than the statement.
    pub(super) async fn each_row(&mut self, template: &Template, staged: &Staged) -> Result<(), Fault> {
        let (template, staged) = (template.clone(), staged.clone());
        self.diesel.spawn_blocking(move |c| Ok(run_each(c, &template, &staged))).await?
    }

    /// Writes rows into a table.
    pub(super) async fn insert(&mut self, table: &Table, staged: &Staged, how: How) -> Result<(), Fault> {
        let (table, staged) = (table.clone(), staged.clone());
        self.diesel.spawn_blocking(move |c| Ok(table.write_blocking(c, &staged, how))).await?
    }

    pub(super) async fn commit(&mut self) -> QueryResult<()> {
        self.diesel.spawn_blocking(AnsiTransactionManager::commit_transaction).await
    }

    pub(super) async fn rollback(&mut self) -> QueryResult<()> {
        self.diesel.spawn_blocking(AnsiTransactionManager::rollback_transaction).await
    }
}

/// As [`Sqlite::each_row`], on the blocking thread.
fn run_each(diesel: &mut SqliteConnection, template: &Template, staged: &Staged) -> Result<(), Fault> {
    let mut run =
        |row: usize, values: &[Value<'_>]| match Statement::new(bind(template, values)).execute(diesel) {
            Ok(_) => Ok(()),
            Err(error) => Err(Fault::at(row..row + 1, SqlError::from(error))),
        };
    if staged.width == 0 {
        return (0..staged.rows as usize).try_for_each(|row| run(row, &[]));
    }
    for chunk in staged.chunks(CHUNK)? {
        let (start, rows) = chunk?;
        (0..rows.len()).try_for_each(|i| run(start + i, rows.row(i)))?;
    }
    Ok(())
}

/// The queue for a file's one writer, shared by all connections of this process.
fn turn_of(path: &str) -> Arc<Turn<()>> {
    static TURNS: LazyLock<Mutex<HashMap<PathBuf, Arc<Turn<()>>>>> = LazyLock::new(Mutex::default);
    let path = Path::new(path);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    // Those of files that nobody has open any more.
    turns.retain(|_, turn| Arc::strong_count(turn) > 1);
    Arc::clone(turns.entry(path).or_default())
}
