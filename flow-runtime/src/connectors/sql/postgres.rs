//! PostgreSQL: the session, and the types that it gives to parameters.
//!
//! A parameter has a type before the server sees its value: a text cannot be bound where a timestamp is wanted, nor an
//! `i64` where an `int4` is. So the type that the server wants is looked up, once: of a table's columns in its
//! catalogue, of a statement's parameters by preparing it without types. Integers, floats and bytes are then bound as
//! such, and everything else as text with a cast, which reads it as it would read a literal between quotes.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use diesel::{QueryResult, QueryableByName, sql_types::Text};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

use super::{
    placeholder::{Piece, Template},
    statement::{Column, Part},
    value::{Rows, Value},
};

pub(super) struct Postgres {
    pub(super) diesel: AsyncPgConnection,
    /// The types of the parameters of each statement seen so far.
    types: HashMap<String, Vec<String>>,
}

/// A process that stands still in the middle of a transaction must not hold its locks for ever, and nobody must wait
/// for them for ever. Only a superuser may choose the language of messages; whoever may not goes on without.
const SETUP: &str = "SET lock_timeout = '30s'; SET idle_in_transaction_session_timeout = '120s'; \
                     SET extra_float_digits = 1; SET default_transaction_isolation = 'read committed'; \
                     SET client_min_messages = warning";
const ENGLISH: &str =
    "SELECT set_config('lc_messages', 'C', false) WHERE current_setting('lc_messages') !~* '^(C|POSIX|en)'";

impl Postgres {
    pub(super) async fn open(url: &str) -> Result<Self, String> {
        let mut diesel = match AsyncPgConnection::establish(url).await {
            Ok(diesel) => diesel,
            Err(error) => return Err(format!("{error}{}", unreachable(url).await)),
        };
        diesel.batch_execute(SETUP).await.map_err(|error| error.to_string())?;
        let _ = diesel.batch_execute(ENGLISH).await;
        Ok(Postgres { diesel, types: HashMap::new() })
    }

    /// The types of a statement's parameters, as the server infers them.
    pub(super) async fn parameter_types(&mut self, template: &Template) -> QueryResult<Vec<String>> {
        #[derive(QueryableByName)]
        struct Type {
            #[diesel(sql_type = Text)]
            kind: String,
        }
        let text = template.numbered();
        if template.params == 0 {
            return Ok(Vec::new());
        }
        if let Some(types) = self.types.get(&text) {
            return Ok(types.clone());
        }
        self.diesel.batch_execute(&format!("PREPARE flow_probe AS {text}")).await?;
        let types: QueryResult<Vec<Type>> = diesel::sql_query(
            "SELECT format_type(t, -1) AS kind FROM pg_prepared_statements, \
             unnest(parameter_types::oid[]) WITH ORDINALITY AS p(t, i) WHERE name = 'flow_probe' ORDER BY i",
        )
        .load(&mut self.diesel)
        .await;
        self.diesel.batch_execute("DEALLOCATE flow_probe").await?;
        let types: Vec<_> = types?.into_iter().map(|t| t.kind).collect();
        self.types.insert(text, types.clone());
        Ok(types)
    }
}

/// The driver does not say why there is no connection; the system does. Nothing if there could be one.
async fn unreachable(url: &str) -> String {
    let Ok(url) = url::Url::parse(url) else { return String::new() };
    let address = (url.host_str().unwrap_or("localhost"), url.port().unwrap_or(5432));
    let probe = tokio::net::TcpStream::connect(address);
    match tokio::time::timeout(Duration::from_secs(2), probe).await {
        Ok(Ok(_)) => String::new(),
        Ok(Err(error)) => format!(": {error}"),
        Err(_) => ": no answer".to_owned(),
    }
}

/// The parts of a statement for one row of parameters.
pub(super) fn bind<'a>(template: &'a Template, types: &[String], row: &[Value<'a>]) -> Vec<Part<'a>> {
    let mut parts = Vec::with_capacity(2 * template.pieces.len());
    for piece in &template.pieces {
        match piece {
            Piece::Sql(text) => parts.push(Part::sql(text)),
            Piece::Param(index) => {
                let (value, kind) = (row[*index], types[*index].as_str());
                parts.push(Part::sql("CAST("));
                parts.push(match (Flavor::of(kind), value) {
                    (Flavor::Int, Value::Int(_))
                    | (Flavor::Float, Value::Float(_))
                    | (Flavor::Bytes, Value::Bytes(_))
                    | (_, Value::Null | Value::Text(_)) => Part::Param(value),
                    _ => Part::Column(Column::Texts(vec![text(value)])),
                });
                // An array of one, because the text is ours and a parameter borrows.
                let alone = matches!(parts.last(), Some(Part::Column(_)));
                parts.push(Part::Sql(Cow::Owned(format!("{} AS {kind})", if alone { "[1]" } else { "" }))));
            }
        }
    }
    parts
}

/// `INSERT .. SELECT .. FROM unnest(..)`: one parameter per column however many rows, so that the server parses one
/// short statement, once.
pub(super) fn insert_parts<'a>(
    head: &'a str,
    tail: &'a str,
    types: &[String],
    rows: &Rows<'a>,
    chosen: &[usize],
) -> Vec<Part<'a>> {
    let list = |item: &dyn Fn(usize, &String) -> String| {
        types.iter().enumerate().map(|(i, kind)| item(i, kind)).collect::<Vec<_>>().join(", ")
    };
    let mut parts = vec![
        Part::sql(head),
        Part::Sql(Cow::Owned(format!(
            " SELECT {} FROM unnest(",
            list(&|i, kind| format!("CAST(c{i} AS {kind})"))
        ))),
    ];
    for (i, kind) in types.iter().enumerate() {
        if i > 0 {
            parts.push(Part::sql(", "));
        }
        parts.push(Part::Column(column(kind, chosen.iter().map(|&row| rows.row(row)[i]))));
    }
    parts.push(Part::Sql(Cow::Owned(format!(") AS flow_rows({})", list(&|i, _| format!("c{i}"))))));
    parts.push(Part::sql(tail));
    parts
}

fn column<'a>(kind: &str, values: impl Iterator<Item = Value<'a>> + Clone) -> Column<'a> {
    let all = |fits: fn(&Value<'a>) -> bool| values.clone().all(|v| matches!(v, Value::Null) || fits(&v));
    match Flavor::of(kind) {
        Flavor::Int if all(|v| matches!(v, Value::Int(_))) => {
            Column::Ints(values.map(|v| if let Value::Int(v) = v { Some(v) } else { None }).collect())
        }
        Flavor::Float if all(|v| matches!(v, Value::Float(_))) => {
            Column::Floats(values.map(|v| if let Value::Float(v) = v { Some(v) } else { None }).collect())
        }
        Flavor::Bytes if all(|v| matches!(v, Value::Bytes(_) | Value::Text(_))) => Column::Bytes(
            values
                .map(|v| match v {
                    Value::Bytes(v) => Some(v),
                    Value::Text(v) => Some(v.as_bytes()),
                    _ => None,
                })
                .collect(),
        ),
        _ => Column::Texts(values.map(text).collect()),
    }
}

/// How values of a type are bound.
enum Flavor {
    Int,
    Float,
    Bytes,
    Text,
}

impl Flavor {
    fn of(kind: &str) -> Self {
        match kind {
            "smallint" | "integer" | "bigint" => Flavor::Int,
            "real" | "double precision" => Flavor::Float,
            "bytea" => Flavor::Bytes,
            _ => Flavor::Text,
        }
    }
}

/// As PostgreSQL reads it between quotes.
fn text(value: Value<'_>) -> Option<Cow<'_, str>> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
        Value::Int(value) => Cow::Owned(value.to_string()),
        Value::UInt(value) => Cow::Owned(value.to_string()),
        Value::Float(value) => Cow::Owned(value.to_string()),
        Value::Text(value) => Cow::Borrowed(value),
        Value::Bytes(value) => match std::str::from_utf8(value) {
            Ok(value) if !value.contains('\0') => Cow::Borrowed(value),
            _ => Cow::Owned(value.iter().fold(String::from("\\x"), |hex, byte| hex + &format!("{byte:02x}"))),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_bound_as_what_it_is() {
        let ints = [Value::Int(1), Value::Null].into_iter();
        assert!(matches!(column("integer", ints.clone()), Column::Ints(_)));
        assert!(matches!(column("text", ints), Column::Texts(_)));
        assert!(matches!(column("bigint", [Value::Text("1")].into_iter()), Column::Texts(_)));
        assert!(matches!(column("bytea", [Value::Text("1")].into_iter()), Column::Bytes(_)));
        assert!(matches!(column("real", [Value::Float(1.0)].into_iter()), Column::Floats(_)));
    }

    #[test]
    fn texts_are_literals() {
        let literal = |value| text(value).unwrap().into_owned();
        assert_eq!(literal(Value::Float(f64::NAN)), "NaN");
        assert_eq!(literal(Value::Float(0.25)), "0.25");
        assert_eq!(literal(Value::Bytes(&[0, 255])), "\\x00ff");
        assert_eq!(literal(Value::from_u64(u64::MAX)), "18446744073709551615");
    }

    #[test]
    fn the_insert_names_each_type() {
        let mut data = Vec::new();
        Value::Text("a").encode(&mut data);
        Value::Int(1).encode(&mut data);
        let rows = Rows::decode(&mut &data[..], 1, 2).unwrap();
        let types = ["text".to_owned(), "integer".to_owned()];
        let parts = insert_parts("INSERT INTO t (a, b)", " ON CONFLICT DO NOTHING", &types, &rows, &[0]);
        let text: String = parts
            .iter()
            .map(|part| match part {
                Part::Sql(sql) => sql.as_ref(),
                _ => "?",
            })
            .collect();
        assert_eq!(
            text,
            "INSERT INTO t (a, b) SELECT CAST(c0 AS text), CAST(c1 AS integer) FROM unnest(?, ?) \
             AS flow_rows(c0, c1) ON CONFLICT DO NOTHING"
        );
    }
}
