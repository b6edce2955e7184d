//! Sinks into SQL databases: SQLite, PostgreSQL, MariaDB and MySQL.
//!
//! | | what it does with a record | guarantee |
//! |---|---|---|
//! | [`insert`] | inserts it | exactly once |
//! | [`upsert`] | inserts it, or updates the row with its key | as good as exactly once |
//! | [`execute`] | runs a statement with its fields as parameters | exactly once |
//! | [`apply`] | calls a closure with a transaction and a batch | exactly once |
//!
//! The URL chooses the database, see [`DatabaseUrl`]; its feature (`sqlite`, `postgres`, `mysql`) brings the driver. None
//! needs a client library. The drivers speak plain TCP, without TLS.
//!
//! # Exactly once, by a ledger
//!
//! The rows of an epoch are staged in memory, go into the checkpoint, and are applied once it is complete, in **one**
//! ordinary transaction with a step in the table `flow_ledger`, which the sink makes in the database that it writes to.
//! The ledger holds, for each job, sink and subtask, the last epoch that was applied. So:
//!
//! - After a crash, wherever it was, the rows that the checkpoint holds are applied if and only if the ledger is behind.
//! - Between checkpoints no transaction is open and nothing is locked.
//! - A run of the job takes the ledger over when it starts. An earlier one that was thought dead commits nothing any more.
//! - A job that starts from an older checkpoint than the ledger knows is refused, with a way to go on.
//!
//! What is staged takes memory: the rows of one checkpoint interval, compactly encoded, and once more for each checkpoint
//! whose rows the database has not yet taken. Readers see rows one checkpoint interval late.
//!
//! The rows of one subtask are applied in the order in which they were written; those of different subtasks in any.
//!
//! # Exactly once, by prepared transactions
//!
//! `.prepared_transactions()` makes a sink write rows to the server as they come, into a transaction that is prepared with
//! the checkpoint (`PREPARE TRANSACTION` in PostgreSQL, XA in MariaDB and MySQL) and committed once it is complete. A
//! checkpoint then carries a name instead of the rows, and the commit takes next to no time however many they are. In
//! return, rows stay locked until the checkpoint is complete. So take it only where **no row is written by two subtasks or
//! by two sinks**: rows that are only inserted, or a stream that is partitioned by the key of the rows. Otherwise one
//! subtask waits for a row of another's prepared transaction, while the checkpoint that would commit it waits for the
//! first: nothing ends that but a lock timeout. A job warns at its start where it cannot see that rows are disjoint, and
//! so does `JOB plan -- ARGUMENTS`, which starts nothing.
//!
//! - After a crash, what the checkpoint names is committed, and everything else of this job and sink is rolled back. A row
//!   in the table `flow_transactions`, inserted by the transaction itself, tells a transaction that was committed from one
//!   that was lost.
//! - What may be missing (`max_prepared_transactions`, a privilege, a newer server) is told at the start, with a remedy.
//! - After a deadlock, or when the server was away, an epoch of up to 64 MiB is written again from memory. A larger one makes
//!   the job start again from its last checkpoint.
//! - A lock that is not to be had is waited for three times 10 s; then the job fails and says who may hold it. For an earlier
//!   epoch of the same subtask the sink waits until its checkpoint is complete. If that fails, its rows stay locked until a
//!   later one is complete; with the default of no tolerable failures the job goes back to the one before instead.
//! - [`SqlSink::in_doubt`] lists what is prepared, should a job never come back. As long as that is so its rows are locked,
//!   and in PostgreSQL nothing is vacuumed.
//!
//! | | ledger | prepared transactions |
//! |---|---|---|
//! | databases | all | PostgreSQL 9.6, MariaDB 10.5.2, MySQL 5.7.7 and newer; not Galera, not SQLite |
//! | the server needs | nothing | `max_prepared_transactions` in PostgreSQL, `XA_RECOVER_ADMIN` in MySQL 8 |
//! | rows | any | each written by one subtask of one sink |
//! | locks | while a transaction is applied | from the first write until the checkpoint is complete |
//! | a checkpoint carries | the rows | a name |
//! | memory | an interval's rows, and more while the database is slow | an interval's rows, up to 64 MiB |
//!
//! # Values
//!
//! Booleans, numbers, texts, bytes (`serde_bytes`), and `None` or `()` as null; an enum's variant without fields is its
//! name; lists, maps and structs inside a record are JSON text. In PostgreSQL each value is given the type of its column,
//! as if it was written between quotes, so that a text can go into a `timestamptz`, a `uuid`, a `jsonb` or an `enum`. An
//! unsigned integer beyond `i64::MAX` is refused by SQLite, which has none, on the worker.
//!
//! # When the database says no
//!
//! Deadlocks, lock timeouts, a busy SQLite, and a server that is away are retried with the whole transaction. Everything
//! else (a constraint, a missing table) stops the job, with the row that was refused: the row is in the checkpoint, so the
//! job goes on from there once the cause is gone.

mod buffer;
mod closure;
mod committer;
mod connection;
mod each_row;
mod encode;
mod epoch;
mod error;
mod handle;
mod identifier;
mod insert_text;
mod ledger;
mod lookup;
#[cfg(feature = "mysql")]
mod mysql;
mod placeholder;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg_attr(
    not(any(feature = "postgres", feature = "mysql")),
    allow(dead_code, unreachable_code, unused_mut, unused_variables, reason = "SQLite alone has none")
)]
mod prepared;
mod recover;
mod retry;
mod scalar;
mod sink;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statement;
mod table;
mod transaction;
mod url;
mod value;
mod work;
mod writer;

use serde::{Serialize, de::DeserializeOwned};

pub use self::{
    buffer::{RecordBuffer, RowBuffer, StagingBuffer},
    closure::{BatchFn, Batches},
    committer::{LedgerCommitter, NoCommitter},
    each_row::EachRow,
    error::SqlError,
    handle::Staged,
    lookup::{SqlLookup, lookup},
    prepared::{
        InDoubt, NotOurs, PreparedCommitter, PreparedTransaction, PreparedWriter, Resolved, TransactionId,
    },
    sink::{Apply, Direct, Execute, Insert, Ledger, Prepared, SqlSink, Upsert, UpsertInto},
    table::{InsertRows, UpsertRows},
    transaction::{OnMysql, OnPostgres, OnSqlite, Query, Transaction},
    url::{Backend, DatabaseUrl},
    work::{Failure, How, Internal, Work},
    writer::{DirectWriter, LedgerWriter},
};
/// The versions that this crate uses, for [`Transaction::execute`].
pub use {diesel, diesel_async};

use crate::error::BoxError;

/// Inserts each record into a table, exactly once.
///
/// A record is a struct, whose fields are the columns, or a tuple with [`columns`](SqlSink::columns); both may borrow. The
/// table may be named with its schema: `shop.orders`.
///
/// ```
/// use flow_runtime::connectors::sql;
///
/// let sink = sql::insert("sqlite:words.db", "counts")
///     .columns(["word", "n"])
///     .prepare("CREATE TABLE IF NOT EXISTS counts (word TEXT, n INTEGER)");
/// ```
pub fn insert(url: impl Into<DatabaseUrl>, table: impl Into<String>) -> Insert {
    let table = table::Table { name: table.into(), columns: None, key: Vec::new() };
    SqlSink::new(url.into(), InsertRows(table))
}

/// Inserts each record into a table, or updates the row that has the same key.
///
/// Rows are written as they come. After a crash some are written again, which changes nothing in the end; but a reader
/// may for a moment see an older value come back. With [`ledger`](SqlSink::ledger) it cannot.
///
/// Of several records with one key in a batch only the last is written. Keys are compared byte by byte for that: where
/// the column ignores case, let the pipeline do so first.
///
/// ```
/// use flow_runtime::connectors::sql;
///
/// let sink = sql::upsert("postgres://flow@localhost/words", "counts").key(["word"]).columns(["word", "n"]);
/// ```
pub fn upsert(url: impl Into<DatabaseUrl>, table: impl Into<String>) -> UpsertInto {
    UpsertInto { url: url.into(), table: table.into() }
}

/// Runs a statement for each record, exactly once, with the record's fields as its parameters in order.
///
/// Each `?` outside of quotes and comments is a parameter, in every database, and `?2` the second one, as often as it is
/// wanted; PostgreSQL takes `$1` as well, and `??` for
/// the operator `?`. One statement per record is one round trip per record: where many records meet in one row,
/// [`apply`] can add them up first.
///
/// ```
/// use flow_runtime::connectors::sql;
///
/// let sink = sql::execute("mysql://flow@localhost/school", "UPDATE student SET total = total + ? WHERE id = ?");
/// ```
pub fn execute(url: impl Into<DatabaseUrl>, statement: impl Into<String>) -> Execute {
    SqlSink::new(url.into(), EachRow::new(statement.into()))
}

/// Calls an `async` closure with a transaction and a batch of records, exactly once: what it writes through the
/// transaction is committed together with the ledger.
///
/// The closure may be called several times in one transaction, and again when the transaction is retried, so it should do
/// nothing but write to it. Return its errors with `?`.
///
/// One row that many records meet in, updated once per batch:
///
/// ```
/// use diesel::prelude::*;
/// use flow_runtime::connectors::sql::{self, Transaction, diesel};
///
/// diesel::table! {
///     student (id) {
///         id -> BigInt,
///         total -> BigInt,
///     }
/// }
///
/// let sink = sql::apply("sqlite:school.db", async |tx: &mut Transaction, points: &[i64]| {
///     let sum: i64 = points.iter().sum();
///     tx.execute(diesel::update(student::table.find(1)).set(student::total.eq(student::total + sum))).await?;
///     Ok(())
/// });
/// ```
///
/// The same as a statement:
///
/// ```
/// use flow_runtime::connectors::sql::{self, Transaction};
///
/// let sink = sql::apply("sqlite:school.db", async |tx: &mut Transaction, points: &[i64]| {
///     let sum: i64 = points.iter().sum();
///     tx.sql("UPDATE student SET total = total + ? WHERE id = ?", (sum, 1)).await?;
///     Ok(())
/// });
/// ```
pub fn apply<R, F>(url: impl Into<DatabaseUrl>, call: F) -> Apply<R>
where
    R: Serialize + DeserializeOwned + Send + Sync + 'static,
    F: for<'t, 'r> AsyncFnOnce(&'t mut Transaction, &'r [R]) -> Result<(), BoxError>
        + for<'t, 'r> BatchFn<&'t mut Transaction, &'r [R], Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    SqlSink::new(url.into(), Batches::new(call))
}
