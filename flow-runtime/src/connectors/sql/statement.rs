//! A statement with its parameters, as diesel runs it.
//!
//! `diesel::sql_query` would do too, but is prepared anew on every execution; this one is kept by the connection.

use std::borrow::Cow;

#[cfg(feature = "sqlite")]
use diesel::sqlite::Sqlite;
use diesel::{
    QueryResult,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{BigInt, Binary, Double, Nullable, Text},
};
#[cfg(feature = "mysql")]
use diesel::{mysql::Mysql, sql_types::Unsigned};
#[cfg(feature = "postgres")]
use diesel::{pg::Pg, sql_types::Array};

#[cfg(any(feature = "sqlite", feature = "mysql"))]
use super::value::Rows;
use super::value::Value;

/// What a statement consists of.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Sql(Cow<'a, str>),
    Param(Value<'a>),
    /// ` VALUES (?, ?), (?, ?) ..`: these of the rows.
    #[cfg(any(feature = "sqlite", feature = "mysql"))]
    Rows(&'a Rows<'a>, &'a [usize]),
    /// A column of many rows: PostgreSQL only.
    #[cfg(feature = "postgres")]
    Column(Column<'a>),
}

impl<'a> Part<'a> {
    pub(super) fn sql(text: &'a str) -> Self {
        Part::Sql(Cow::Borrowed(text))
    }
}

/// The values of one column, in the type in which they are bound.
#[cfg(feature = "postgres")]
#[derive(Debug)]
pub(super) enum Column<'a> {
    Ints(Vec<Option<i64>>),
    Floats(Vec<Option<f64>>),
    Bytes(Vec<Option<&'a [u8]>>),
    Texts(Vec<Option<Cow<'a, str>>>),
}

/// A statement and its parameters.
#[derive(Debug)]
pub(super) struct Statement<'a> {
    parts: Vec<Part<'a>>,
    /// Whether the same text will come again often enough to keep it prepared.
    keep: bool,
}

impl<'a> Statement<'a> {
    pub(super) fn new(parts: Vec<Part<'a>>) -> Self {
        Statement { parts, keep: true }
    }

    /// For texts of which there may be very many.
    pub(super) fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }
}

impl QueryId for Statement<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

/// For a connection that is not async.
#[cfg(feature = "sqlite")]
impl<C> diesel::RunQueryDsl<C> for Statement<'_> {}

/// A null needs some type to be bound; all three databases take a null of any.
const NULL: &Option<String> = &None;
const TRUE: &i64 = &1;
const FALSE: &i64 = &0;

/// How a database takes a value. They differ in unsigned integers.
macro_rules! bind {
    ($value:expr, $out:ident, |$unsigned:ident| $push_unsigned:expr) => {
        match $value {
            Value::Null => $out.push_bind_param::<Nullable<Text>, _>(NULL)?,
            Value::Bool(true) => $out.push_bind_param::<BigInt, _>(TRUE)?,
            Value::Bool(false) => $out.push_bind_param::<BigInt, _>(FALSE)?,
            Value::Int(value) => $out.push_bind_param::<BigInt, _>(value)?,
            Value::UInt($unsigned) => $push_unsigned?,
            Value::Float(value) => $out.push_bind_param::<Double, _>(value)?,
            Value::Text(value) => $out.push_bind_param::<Text, str>(value)?,
            Value::Bytes(value) => $out.push_bind_param::<Binary, [u8]>(value)?,
        }
    };
}

/// How a database takes the parts.
macro_rules! walk {
    (
        $statement:ident, $out:ident, |$unsigned:ident| $push_unsigned:expr,
        |$rows:ident, $chosen:ident| $push_rows:expr, |$column:ident| $push_column:expr
    ) => {{
        if !$statement.keep {
            $out.unsafe_to_cache_prepared();
        }
        for part in &$statement.parts {
            match part {
                Part::Sql(text) => $out.push_sql(text),
                Part::Param(value) => bind!(value, $out, |$unsigned| $push_unsigned),
                #[cfg(any(feature = "sqlite", feature = "mysql"))]
                Part::Rows($rows, $chosen) => $push_rows,
                #[cfg(feature = "postgres")]
                Part::Column($column) => $push_column?,
            }
        }
        Ok(())
    }};
}

/// `$out` is walked through several times for each statement, so this looks at the rows where they are.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
macro_rules! rows {
    ($rows:ident, $chosen:ident, $out:ident, |$unsigned:ident| $push_unsigned:expr) => {{
        let mut before = " VALUES (";
        for &row in *$chosen {
            for value in $rows.row(row) {
                $out.push_sql(before);
                bind!(value, $out, |$unsigned| $push_unsigned);
                before = ", ";
            }
            before = "), (";
        }
        $out.push_sql(")");
    }};
}

#[cfg(feature = "sqlite")]
impl QueryFragment<Sqlite> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        walk!(
            self,
            out,
            |value| too_large(*value),
            |rows, chosen| rows!(rows, chosen, out, |value| too_large(*value)),
            |_column| other_form()
        )
    }
}

#[cfg(feature = "mysql")]
impl QueryFragment<Mysql> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Mysql>) -> QueryResult<()> {
        walk!(
            self,
            out,
            |value| out.push_bind_param::<Unsigned<BigInt>, _>(value),
            |rows, chosen| rows!(rows, chosen, out, |value| out
                .push_bind_param::<Unsigned<BigInt>, _>(value)),
            |_column| other_form()
        )
    }
}

#[cfg(feature = "postgres")]
impl QueryFragment<Pg> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        walk!(self, out, |value| too_large(*value), |_rows, _chosen| other_form()?, |column| match column {
            Column::Ints(c) => out.push_bind_param::<Array<Nullable<BigInt>>, _>(c),
            Column::Floats(c) => out.push_bind_param::<Array<Nullable<Double>>, _>(c),
            Column::Bytes(c) => out.push_bind_param::<Array<Nullable<Binary>>, _>(c),
            Column::Texts(c) => out.push_bind_param::<Array<Nullable<Text>>, _>(c),
        })
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn too_large(value: u64) -> QueryResult<()> {
    let error = format!("{value} is beyond the 64-bit signed integers");
    Err(diesel::result::Error::SerializationError(error.into()))
}

#[cfg(all(feature = "postgres", any(feature = "sqlite", feature = "mysql")))]
fn other_form() -> QueryResult<()> {
    let why = "PostgreSQL takes many rows as columns, and the others take them as values";
    Err(diesel::result::Error::QueryBuilderError(why.into()))
}
