//! The transaction that a closure writes in.

#[cfg(feature = "sqlite")]
use diesel::SqliteConnection;
use diesel::query_builder::QueryId;
#[cfg(feature = "mysql")]
use diesel_async::AsyncMysqlConnection;
#[cfg(feature = "postgres")]
use diesel_async::AsyncPgConnection;
use diesel_async::RunQueryDsl;
#[cfg(feature = "sqlite")]
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use serde::Serialize;

use super::{
    buffer::{Columns, RowBuffer},
    connection::{Connection, each},
    encode::encode_row,
    error::SqlError,
    placeholder::{Piece, Template},
    statement::{Part, Statement},
    url::Backend,
    value::{Rows, Value},
};

/// The transaction in which a closure of [`apply`](super::apply) writes a batch. The runtime opens it, notes the epoch
/// in the ledger, and commits it once the closure has returned `Ok`.
///
/// Do not commit it, roll it back, or run what does so on its own (in MariaDB and MySQL: `CREATE TABLE` and the like);
/// where that happens all the same, the commit is refused.
pub struct Transaction {
    pub(super) connection: Connection,
}

/// A diesel query that every database compiled in can run: `diesel::update(..)`, `diesel::delete(..)`,
/// `diesel::insert_into(..)` of one row, `diesel::sql_query(..)`.
///
/// Implemented for all of them; where one database lacks what the query uses, take the connection of the other, for
/// example [`Transaction::postgres`].
#[diagnostic::on_unimplemented(
    message = "not every database that is compiled in can run `{Self}`",
    note = "turn off the features of the databases that you do not use, or take the connection of one: `tx.postgres()`, `tx.mysql()`, `tx.sqlite()`"
)]
pub trait Query: OnSqlite + OnPostgres + OnMysql + QueryId + Send {}

impl<Q: OnSqlite + OnPostgres + OnMysql + QueryId + Send> Query for Q {}

macro_rules! on {
    ($trait:ident, $feature:literal, $backend:path, $name:literal) => {
        #[doc = concat!("What ", $name, " can run; everything where it is not compiled in.")]
        #[cfg(feature = $feature)]
        pub trait $trait: diesel::query_builder::QueryFragment<$backend> {}
        #[cfg(feature = $feature)]
        impl<Q: diesel::query_builder::QueryFragment<$backend>> $trait for Q {}

        #[doc = concat!("What ", $name, " can run; everything where it is not compiled in.")]
        #[cfg(not(feature = $feature))]
        pub trait $trait {}
        #[cfg(not(feature = $feature))]
        impl<Q> $trait for Q {}
    };
}

on!(OnSqlite, "sqlite", diesel::sqlite::Sqlite, "SQLite");
on!(OnPostgres, "postgres", diesel::pg::Pg, "PostgreSQL");
on!(OnMysql, "mysql", diesel::mysql::Mysql, "MariaDB and MySQL");

impl Transaction {
    /// Which database it is in.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.connection.backend()
    }

    /// Runs a diesel query and tells how many rows it wrote.
    ///
    /// # Errors
    /// What the database says; hand it on with `?`, so that a deadlock is retried and anything else stops the job.
    pub async fn execute<Q: Query>(&mut self, query: Q) -> Result<usize, SqlError> {
        let count = each!(&mut self.connection, diesel => RunQueryDsl::execute(query, diesel).await)?;
        Ok(count)
    }

    /// Runs a statement and tells how many rows it wrote. Each `?` outside of quotes is a parameter in every database;
    /// `params` is a tuple or a struct with their values, or a single one.
    ///
    /// # Errors
    /// What the database says; hand it on with `?`, so that a deadlock is retried and anything else stops the job.
    pub async fn sql(&mut self, statement: &str, params: impl Serialize) -> Result<usize, SqlError> {
        let backend = self.backend();
        let template = Template::parse(backend, statement)?;
        let place = format!("statement `{statement}`");
        let mut row = RowBuffer::new(Columns::Unnamed(Some(template.params)), place, Some(backend));
        encode_row(&params, &mut row)?;
        drop(params);
        let rows = Rows::decode(&mut &row.data[..], 1, template.params)?;
        self.run_template(&template, rows.row(0)).await
    }

    pub(super) async fn run_template(
        &mut self,
        template: &Template,
        row: &[Value<'_>],
    ) -> Result<usize, SqlError> {
        #[cfg(feature = "postgres")]
        if let Some(postgres) = self.connection.as_postgres() {
            let types = postgres.parameter_types(template).await?;
            let parts = super::postgres::bind(template, &types, row);
            return Ok(self.connection.run(Statement::new(parts)).await?);
        }
        Ok(self.connection.run(Statement::new(bind(template, row))).await?)
    }

    /// The diesel connection, if this is SQLite. A transaction on it is a savepoint in this one.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(&mut self) -> Option<&mut SyncConnectionWrapper<SqliteConnection>> {
        self.connection.as_sqlite().map(|sqlite| &mut sqlite.diesel)
    }

    /// The diesel connection, if this is PostgreSQL. A transaction on it is a savepoint in this one.
    #[cfg(feature = "postgres")]
    pub fn postgres(&mut self) -> Option<&mut AsyncPgConnection> {
        self.connection.as_postgres().map(|postgres| &mut postgres.diesel)
    }

    /// The diesel connection, if this is MariaDB or MySQL. A transaction on it is a savepoint in this one.
    #[cfg(feature = "mysql")]
    pub fn mysql(&mut self) -> Option<&mut AsyncMysqlConnection> {
        self.connection.as_mysql()
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("backend", &self.backend()).finish_non_exhaustive()
    }
}

/// The parts of a statement where the database takes a value of any type.
pub(super) fn bind<'a>(template: &'a Template, row: &[Value<'a>]) -> Vec<Part<'a>> {
    let part = |piece: &'a Piece| match piece {
        Piece::Sql(text) => Part::sql(text),
        Piece::Param(index) => Part::Param(row[*index]),
    };
    template.pieces.iter().map(part).collect()
}
