//! Rows into a table.

use std::{iter, ops::Range};

#[cfg(feature = "sqlite")]
use diesel::{RunQueryDsl as _, SqliteConnection};

use super::{
    buffer::{Columns, RowBuffer},
    connection::Connection,
    error::{Fault, SqlError},
    handle::Staged,
    identifier::{quote_list, quote_table, quote_text},
    insert_text::{head, on_conflict},
    ledger::names,
    statement::{Part, Statement},
    transaction::Transaction,
    url::Backend,
    value::{Rows, Value},
    work::{Failure, How, Internal, Work},
};

/// The most rows of one statement with a parameter for each value.
const BATCH_ROWS: usize = 1000;
/// And of one with a parameter for each column.
pub(super) const COLUMN_ROWS: usize = 10_000;
/// And about the most bytes, well below what servers accept by default.
const BATCH_BYTES: usize = 1024 * 1024;

/// How many rows are decoded at once: a full batch or a few.
const CHUNK: usize = COLUMN_ROWS;

/// Inserts rows, see [`insert`](super::insert).
#[derive(Clone, Debug)]
pub struct InsertRows(pub(super) Table);

/// Inserts rows, or updates those that are there, see [`upsert`](super::upsert).
#[derive(Clone, Debug)]
pub struct UpsertRows(pub(super) Table);

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Option<Vec<String>>,
    /// Empty for a plain insert.
    pub(super) key: Vec<String>,
}

/// Both are a table; only what becomes of a row that is there sets them apart.
macro_rules! rows {
    ($($rows:ty),*) => { $(
        impl Work for $rows {
            type Buffer = RowBuffer;
            const FOREIGN: bool = false;

            fn buffer(&self, backend: Option<Backend>) -> RowBuffer {
                self.0.buffer(backend)
            }

            fn place(&self) -> String {
                self.0.place()
            }

            fn table(&self) -> Option<&str> {
                Some(&self.0.name)
            }

            async fn check(&self, internal: &mut Internal<'_>) -> Result<(), SqlError> {
                self.0.check(internal.0).await
            }

            async fn apply(&self, tx: &mut Transaction, staged: &Staged, how: How) -> Result<(), Failure> {
                Ok(self.0.write(&mut tx.connection, staged, how).await?)
            }
        }
    )* };
}

rows!(InsertRows, UpsertRows);

impl Table {
    fn buffer(&self, backend: Option<Backend>) -> RowBuffer {
        let columns = match &self.columns {
            Some(columns) => Columns::Fixed(columns.clone()),
            None => Columns::Learned(Vec::new()),
        };
        RowBuffer::new(columns, self.place(), backend)
    }

    fn place(&self) -> String {
        format!("table `{}`", self.name)
    }

    /// Refuses before the first record what would be refused, or silently go wrong, later.
    async fn check(&self, connection: &mut Connection) -> Result<(), SqlError> {
        let backend = connection.backend();
        let there = self.describe(connection).await?;
        if there.is_empty() {
            return Err(SqlError::Setup(format!(
                "there is no {}; create it, or let the sink do it with `.prepare(\"CREATE TABLE IF NOT EXISTS ..\")`",
                self.place()
            )));
        }
        if let Some(columns) = &self.columns {
            self.find(backend, &there, columns)?;
        }
        self.find(backend, &there, &self.key)?;
        if backend == Backend::Mysql {
            self.check_engine(connection).await?;
        }
        if self.key.is_empty() { Ok(()) } else { self.check_key(connection).await }
    }

    /// The table's columns and, for PostgreSQL, their types. Nothing if there is no such table.
    async fn describe(&self, connection: &mut Connection) -> Result<Vec<(String, String)>, SqlError> {
        let backend = connection.backend();
        let text = match backend {
            Backend::Sqlite => {
                let (schema, table) = split(&self.name);
                let schema = schema.map(|schema| format!(", {}", quote_text(backend, schema)));
                let table = quote_text(backend, table);
                format!("SELECT name FROM pragma_table_info({table}{})", schema.unwrap_or_default())
            }
            Backend::Postgres => format!(
                "SELECT CAST(attname AS text) || chr(10) || format_type(atttypid, -1) AS name FROM pg_attribute \
                 WHERE attrelid = to_regclass({}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                quote_text(backend, &quote_table(backend, &self.name))
            ),
            // MySQL 8 gives them in no order of their own.
            Backend::Mysql => format!(
                "SELECT column_name AS name FROM information_schema.columns WHERE {} ORDER BY ordinal_position",
                self.in_schema("")
            ),
        };
        let columns = names(connection, &text).await?;
        let pair = |text: String| match text.rsplit_once('\n') {
            Some((name, kind)) => (name.to_owned(), kind.to_owned()),
            None => (text, String::new()),
        };
        Ok(columns.into_iter().map(pair).collect())
    }

    fn in_schema(&self, prefix: &str) -> String {
        let (schema, table) = split(&self.name);
        let schema = schema.map_or("DATABASE()".to_owned(), |schema| quote_text(Backend::Mysql, schema));
        let table = quote_text(Backend::Mysql, table);
        format!("{prefix}table_schema = {schema} AND {prefix}table_name = {table}")
    }

    /// The types of some of the table's columns.
    fn find(
        &self,
        backend: Backend,
        there: &[(String, String)],
        columns: &[String],
    ) -> Result<Vec<String>, SqlError> {
        let same =
            |a: &str, b: &str| if backend == Backend::Postgres { a == b } else { a.eq_ignore_ascii_case(b) };
        let find = |column: &String| match there.iter().find(|(name, _)| same(name, column)) {
            Some((_, kind)) => Ok(kind.clone()),
            None => Err(SqlError::Setup(format!(
                "{} has no column `{column}`; it has {}",
                self.place(),
                there.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            ))),
        };
        columns.iter().map(find).collect()
    }

    /// A table without transactions keeps what was to be rolled back.
    async fn check_engine(&self, connection: &mut Connection) -> Result<(), SqlError> {
        let text = format!(
            "SELECT t.engine AS name FROM information_schema.tables t \
             JOIN information_schema.engines e ON e.engine = t.engine \
             WHERE {} AND COALESCE(e.transactions, 'NO') <> 'YES'",
            self.in_schema("t.")
        );
        match names(connection, &text).await?.first() {
            Some(engine) => Err(SqlError::Setup(format!(
                "{} is of the engine {engine}, which has no transactions: rows would be written twice after a crash; run: ALTER TABLE {} ENGINE = InnoDB",
                self.place(),
                quote_table(Backend::Mysql, &self.name)
            ))),
            None => Ok(()),
        }
    }

    /// Without a unique index on just the key, PostgreSQL and SQLite refuse an upsert and MariaDB inserts duplicates.
    async fn check_key(&self, connection: &mut Connection) -> Result<(), SqlError> {
        let backend = connection.backend();
        let (table, key) = (quote_table(backend, &self.name), quote_list(backend, &self.key));
        let refusal = |cause: &str| {
            SqlError::Setup(format!(
                "{} cannot be upserted by ({}){cause}; run: CREATE UNIQUE INDEX flow_key ON {table} ({key})",
                self.place(),
                self.key.join(", ")
            ))
        };
        if backend == Backend::Mysql {
            let text = format!(
                "SELECT GROUP_CONCAT(LOWER(column_name) ORDER BY LOWER(column_name)) AS name \
                 FROM information_schema.statistics WHERE {} AND non_unique = 0 GROUP BY index_name",
                self.in_schema("")
            );
            let mut wanted: Vec<_> = self.key.iter().map(|column| column.to_lowercase()).collect();
            wanted.sort();
            let wanted = wanted.join(",");
            let indexes = names(connection, &text).await?;
            return if indexes.contains(&wanted) {
                Ok(())
            } else {
                Err(refusal(": it has no unique index on them"))
            };
        }
        let nulls = vec!["NULL"; self.key.len()].join(", ");
        let explain =
            format!("EXPLAIN INSERT INTO {table} ({key}) VALUES ({nulls}) ON CONFLICT ({key}) DO NOTHING");
        connection.batch(&explain).await.map_err(|error| refusal(&format!(": {}", SqlError::from(error))))
    }

    async fn write(&self, connection: &mut Connection, staged: &Staged, how: How) -> Result<(), Fault> {
        #[cfg(feature = "sqlite")]
        if let Some(sqlite) = connection.as_sqlite() {
            return sqlite.insert(self, staged, how).await;
        }
        let backend = connection.backend();
        #[cfg_attr(not(feature = "postgres"), allow(unused_mut, reason = "for PostgreSQL alone"))]
        let mut texts = self.texts(backend, staged);
        #[cfg(feature = "postgres")]
        if backend == Backend::Postgres {
            let there = self.describe(connection).await?;
            texts.types = self.find(backend, &there, &staged.columns)?;
        }
        for chunk in staged.chunks(self.chunk())? {
            let (first, rows) = chunk?;
            let order = self.order(&rows, &staged.columns)?;
            for (span, statement) in batches(&texts, first, &rows, &order, how) {
                let result = connection.run(statement).await;
                result.map_err(|error| Fault::at(span, SqlError::from(error)))?;
            }
        }
        Ok(())
    }

    /// The same without a visit to another thread for each statement, and without copies of the values to take along.
    #[cfg(feature = "sqlite")]
    pub(super) fn write_blocking(
        &self,
        connection: &mut SqliteConnection,
        staged: &Staged,
        how: How,
    ) -> Result<(), Fault> {
        let texts = self.texts(Backend::Sqlite, staged);
        for chunk in staged.chunks(self.chunk())? {
            let (first, rows) = chunk?;
            let order = self.order(&rows, &staged.columns)?;
            for (span, statement) in batches(&texts, first, &rows, &order, how) {
                let result = statement.execute(connection);
                result.map_err(|error| Fault::at(span, SqlError::from(error)))?;
            }
        }
        Ok(())
    }

    fn texts(&self, backend: Backend, staged: &Staged) -> Texts {
        let columns = &staged.columns;
        let upsert = !self.key.is_empty();
        Texts {
            backend,
            head: head(backend, &self.name, columns),
            tail: if upsert { on_conflict(backend, columns, &self.key) } else { String::new() },
            #[cfg(feature = "postgres")]
            types: Vec::new(),
        }
    }

    /// An upsert must see all rows at once, to find the last of each key.
    fn chunk(&self) -> usize {
        if self.key.is_empty() { CHUNK } else { usize::MAX }
    }

    /// The rows to write, in the order in which to do it.
    fn order(&self, rows: &Rows<'_>, columns: &[String]) -> Result<Vec<usize>, SqlError> {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        if !self.key.is_empty() {
            self.last_of_each_key(rows, columns, &mut order)?;
        }
        Ok(order)
    }

    /// Sorts by key, so that concurrent transactions lock in the same order, and keeps the last row of each: a statement
    /// must not meet a key twice.
    fn last_of_each_key(
        &self,
        rows: &Rows<'_>,
        columns: &[String],
        order: &mut Vec<usize>,
    ) -> Result<(), SqlError> {
        let key: Vec<usize> = self
            .key
            .iter()
            .map(|name| {
                columns.iter().position(|column| column == name).ok_or_else(|| {
                    SqlError::Setup(format!(
                        "{}: the record has no field `{name}`, which is part of the key; it has {}",
                        self.place(),
                        columns.join(", ")
                    ))
                })
            })
            .collect::<Result<_, _>>()?;
        let compare = |a: usize, b: usize| {
            let (a, b) = (rows.row(a), rows.row(b));
            key.iter().map(|&i| a[i].order(&b[i])).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        };
        order.sort_by(|&a, &b| compare(a, b));
        let mut kept = 0;
        for i in 0..order.len() {
            if i + 1 == order.len() || compare(order[i], order[i + 1]).is_ne() {
                order[kept] = order[i];
                kept += 1;
            }
        }
        order.truncate(kept);
        Ok(())
    }
}

/// What is the same for all batches.
struct Texts {
    backend: Backend,
    head: String,
    tail: String,
    #[cfg(feature = "postgres")]
    types: Vec<String>,
}

/// The statements that write rows in this order. `first` is the index, in the epoch, of the first of `rows`. With each
/// comes where to search on if it fails: one row is told by its place in the epoch, several by theirs in the order of
/// writing.
fn batches<'a>(
    texts: &'a Texts,
    first: usize,
    rows: &'a Rows<'a>,
    order: &'a [usize],
    how: How,
) -> impl Iterator<Item = (Range<usize>, Statement<'a>)> {
    let full = match texts.backend {
        Backend::Sqlite => (32_766 / rows.width()).clamp(1, BATCH_ROWS),
        // One parameter per column.
        Backend::Postgres => COLUMN_ROWS,
        Backend::Mysql => (65_534 / rows.width()).clamp(1, BATCH_ROWS),
    };
    let mut start = 0;
    iter::from_fn(move || {
        if start == order.len() {
            return None;
        }
        let most = match how {
            How::Batched => full,
            // Rows may have come in other batches when one of them was refused.
            How::Narrow { from, .. } if first + start < from => full.min(from - (first + start)),
            How::Narrow { most, .. } => full.min(most),
        };
        let end = batch_end(rows, order, start, most);
        let chosen = &order[start..end];
        let span = match chosen {
            [row] => first + row..first + row + 1,
            _ => first + start..first + end,
        };
        start = end;
        Some((span, statement(texts, rows, chosen, chosen.len() == full)))
    })
}

fn statement<'a>(texts: &'a Texts, rows: &'a Rows<'a>, chosen: &'a [usize], full: bool) -> Statement<'a> {
    match texts.backend {
        #[cfg(feature = "postgres")]
        Backend::Postgres => Statement::new(super::postgres::insert_parts(
            &texts.head,
            &texts.tail,
            &texts.types,
            rows,
            chosen,
        )),
        #[cfg(any(feature = "sqlite", feature = "mysql"))]
        // Only the full size comes again and again.
        _ => Statement::new(vec![Part::sql(&texts.head), Part::Rows(rows, chosen), Part::sql(&texts.tail)])
            .keep(full),
        #[cfg(not(any(feature = "sqlite", feature = "mysql")))]
        _ => unreachable!("no connection to it could be opened"),
    }
}

fn split(table: &str) -> (Option<&str>, &str) {
    match table.rsplit_once('.') {
        Some((schema, table)) => (Some(schema), table),
        None => (None, table),
    }
}

fn batch_end(rows: &Rows<'_>, order: &[usize], start: usize, most: usize) -> usize {
    let mut bytes = 0;
    let mut end = start;
    while end < order.len() && end - start < most {
        bytes += rows.row(order[end]).iter().map(Value::weight).sum::<usize>();
        if bytes > BATCH_BYTES && end > start {
            break;
        }
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "sqlite")]
    use diesel::sqlite::Sqlite;

    fn table(key: &[&str]) -> Table {
        Table { name: "t".into(), columns: None, key: key.iter().map(|&k| k.to_owned()).collect() }
    }

    #[test]
    fn the_last_row_of_a_key_wins() {
        let mut data = Vec::new();
        for (word, n) in [("b", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5)] {
            Value::Text(word).encode(&mut data);
            Value::Int(n).encode(&mut data);
        }
        let rows = Rows::decode(&mut &data[..], 5, 2).unwrap();
        let columns = ["word".to_owned(), "n".to_owned()];
        let mut order = (0..5).collect();
        table(&["word"]).last_of_each_key(&rows, &columns, &mut order).unwrap();
        assert_eq!(order, [3, 2, 4]);
        let mut order = (0..5).collect();
        table(&["n", "word"]).last_of_each_key(&rows, &columns, &mut order).unwrap();
        assert_eq!(order, [0, 1, 2, 3, 4]);
        let why = table(&["id"]).last_of_each_key(&rows, &columns, &mut order).unwrap_err().to_string();
        assert!(why.contains("no field `id`"), "{why}");
    }

    #[test]
    fn batches_end_at_rows_and_at_bytes() {
        let big = "x".repeat(400 * 1024);
        let mut data = Vec::new();
        for _ in 0..5 {
            Value::Text(&big).encode(&mut data);
        }
        let rows = Rows::decode(&mut &data[..], 5, 1).unwrap();
        let order = [0, 1, 2, 3, 4];
        assert_eq!(batch_end(&rows, &order, 0, 1000), 2);
        assert_eq!(batch_end(&rows, &order, 4, 1000), 5);
        assert_eq!(batch_end(&rows, &order, 0, 1), 1);
    }

    #[cfg(feature = "sqlite")]
    #[test]
    #[allow(clippy::field_reassign_with_default, reason = "its other fields are private")]
    fn values_are_parameters() {
        let mut data = Vec::new();
        for n in 0..6 {
            Value::Int(n).encode(&mut data);
        }
        let rows = Rows::decode(&mut &data[..], 3, 2).unwrap();
        let mut staged = Staged::default();
        staged.columns = vec!["a".into(), "b".into()];
        let texts = table(&[]).texts(Backend::Sqlite, &staged);
        let shown = |how| -> Vec<_> {
            let batches = batches(&texts, 10, &rows, &[0, 2], how);
            batches
                .map(|(span, statement)| (span, diesel::debug_query::<Sqlite, _>(&statement).to_string()))
                .collect()
        };
        let all = r#"INSERT INTO "t" ("a", "b") VALUES (?, ?), (?, ?) -- binds: [0, 1, 4, 5]"#;
        assert_eq!(shown(How::Batched), [(10..12, all.to_owned())]);
        let one = |binds: &str| format!(r#"INSERT INTO "t" ("a", "b") VALUES (?, ?) -- binds: [{binds}]"#);
        let singly = [(10..11, one("0, 1")), (12..13, one("4, 5"))];
        assert_eq!(shown(How::Narrow { from: 0, most: 1 }), singly);
        // What was refused begins at the second row, so no batch may begin before it and reach into it.
        assert_eq!(shown(How::Narrow { from: 11, most: 1 }), singly);
        assert_eq!(shown(How::Narrow { from: 12, most: 1 }), [(10..12, all.to_owned())]);
        assert_eq!(shown(How::Narrow { from: 10, most: 2 }), [(10..12, all.to_owned())]);
    }
}
