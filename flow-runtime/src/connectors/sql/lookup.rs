//! Looking rows up by a statement.

use std::{
    fmt,
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use diesel::{
    deserialize::{self, FromSqlRow},
    row::{Field, Row},
    sql_types::Untyped,
};
use diesel_async::RunQueryDsl;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json};
use tokio::sync::Semaphore;

use super::{
    buffer::{Columns, RowBuffer},
    connection::{Connection, each},
    encode::encode_row,
    error::{Class, SqlError, classify},
    placeholder::Template,
    retry::Backoff,
    statement::{Part, Statement},
    transaction::bind,
    url::DatabaseUrl,
    value::{Rows, Value},
};
use crate::{async_io::Lookup, error::BoxError};

/// Connections of a subtask, unless it asks for another number.
const CONNECTIONS: usize = 4;
/// How often a query is tried while the server is away, before the operator's `.retry(..)` has its say.
const TRIES: u32 = 4;

/// Looks rows up by a statement, whose parameters are the fields of the key in order; `?` is one in every database, and `?2`
/// the second, as often as it is wanted.
///
/// A row is read into any type that serde can read: a struct by the names of its columns, a tuple by their order, a single
/// column as it is. Of several rows the first is taken. Numbers, texts, bytes and booleans are read; anything else, such as
/// a date or a decimal of PostgreSQL, the statement casts to text.
///
/// In a pipeline:
///
/// ```ignore
/// let users = sql::lookup(&url, "SELECT name, tier FROM users WHERE id = ?").cache(10_000, "1m");
/// orders.lookup_join(users, |order| order.user).with(|order, user: User| ..)
/// ```
///
/// What is found is what is there when it is looked up. A table whose rows say when they are valid can be joined as of the
/// event time of the record instead, by making that a part of the key: the result then depends on the record alone, also
/// when it is looked up again after a restart.
///
/// ```ignore
/// let rates = sql::lookup(
///     &url,
///     "SELECT rate FROM rates WHERE currency = ?1 AND valid_from <= ?2 AND ?2 < valid_to",
/// );
/// orders
///     .lookup_join(rates.cache(10_000, "1h"), |order| (order.currency.clone(), order.at))
///     .with(|order, rate: f64| order.amount * rate)
/// ```
///
/// A cache knows a key, and so a time, at once: where rates hold for days, `order.at / DAY * DAY` finds more in it.
///
/// Each subtask has 4 connections, or as many as [`connections`](SqlLookup::connections) says, which are opened when they
/// are wanted. A query that meets a server that is away, or a deadlock, is tried again on another connection.
pub fn lookup<V>(url: impl Into<DatabaseUrl>, statement: impl Into<String>) -> SqlLookup<V> {
    SqlLookup {
        url: url.into(),
        statement: statement.into(),
        idle: Mutex::default(),
        permits: Semaphore::new(CONNECTIONS),
        of: PhantomData,
    }
}

/// See [`lookup`].
pub struct SqlLookup<V> {
    url: DatabaseUrl,
    statement: String,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    of: PhantomData<fn() -> V>,
}

impl<V> SqlLookup<V> {
    /// How many connections a subtask has at most; at least one.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.permits = Semaphore::new(connections.max(1));
        self
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// One try. The connection is gone when it fails.
    async fn query(&self, template: &Template, row: &[Value<'_>]) -> Result<Option<Found>, SqlError> {
        let mut connection = match self.take() {
            Some(connection) => connection,
            None => Connection::open(&self.url).await?,
        };
        let parts = parts(&mut connection, template, row).await?;
        let found: Vec<Found> =
            each!(&mut connection, diesel => RunQueryDsl::load(Statement::new(parts), diesel).await)?;
        self.give_back(connection);
        Ok(found.into_iter().next())
    }
}

/// The statement with its parameters, as the database takes them.
async fn parts<'a>(
    connection: &mut Connection,
    template: &'a Template,
    row: &[Value<'a>],
) -> Result<Vec<Part<'a>>, SqlError> {
    #[cfg(feature = "postgres")]
    if let Some(postgres) = connection.as_postgres() {
        let types = postgres.parameter_types(template).await?;
        return Ok(super::postgres::bind(template, &types, row));
    }
    let _ = connection;
    Ok(bind(template, row))
}

impl<K, V> Lookup<K> for SqlLookup<V>
where
    K: Serialize + Send + 'static,
    V: DeserializeOwned + Send + 'static,
{
    type Value = V;

    async fn get(&self, key: K) -> Result<Option<V>, BoxError> {
        let backend = self.url.target()?.backend;
        let template = Template::parse(backend, &self.statement)?;
        let place = format!("lookup `{}`", self.statement);
        let mut buffer = RowBuffer::new(Columns::Unnamed(Some(template.params)), place, Some(backend));
        encode_row(&key, &mut buffer)?;
        drop(key);
        let rows = Rows::decode(&mut &buffer.data[..], 1, template.params)?;
        // Closed only with the lookup.
        let _permit = self.permits.acquire().await?;
        let mut backoff = Backoff::new();
        loop {
            match self.query(&template, rows.row(0)).await {
                Ok(None) => return Ok(None),
                Ok(Some(found)) => return Ok(Some(found.read(&self.statement)?)),
                Err(error) if classify(&error) != Class::Transient || backoff.tries() >= TRIES => {
                    return Err(error.into());
                }
                // What is idle may be of the same server that went away.
                Err(_) => self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear(),
            }
            backoff.wait().await;
        }
    }
}

impl<V> fmt::Debug for SqlLookup<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.to_string();
        f.debug_struct("SqlLookup")
            .field("url", &url)
            .field("statement", &self.statement)
            .finish_non_exhaustive()
    }
}

impl diesel::query_builder::Query for Statement<'_> {
    type SqlType = Untyped;
}

/// A row, by the names of its columns.
struct Found(Vec<(String, Json)>);

impl Found {
    /// As what the pipeline wants.
    fn read<V: DeserializeOwned>(self, statement: &str) -> Result<V, SqlError> {
        let values: Vec<Json> = self.0.iter().map(|(_, value)| value.clone()).collect();
        let single = if let [value] = &values[..] { Some(value.clone()) } else { None };
        let named: Map<String, Json> = self.0.into_iter().collect();
        serde_json::from_value(Json::Object(named)).or_else(|error| {
            // Of the reasons the first speaks of columns, which a struct has.
            let single = single.map(serde_json::from_value);
            single
                .and_then(Result::ok)
                .or_else(|| serde_json::from_value(Json::Array(values)).ok())
                .ok_or_else(|| {
                    SqlError::Record(format!("a row of `{statement}` is not what is wanted: {error}"))
                })
        })
    }
}

macro_rules! found {
    ($feature:literal, $backend:ty, $read:path) => {
        #[cfg(feature = $feature)]
        impl FromSqlRow<Untyped, $backend> for Found {
            fn build_from_row<'a>(row: &impl Row<'a, $backend>) -> deserialize::Result<Self> {
                let columns = (0..row.field_count()).filter_map(|i| row.get(i)).map(|field| {
                    let name = field.field_name().unwrap_or_default().to_owned();
                    let value = match field.value() {
                        None => Json::Null,
                        Some(value) => $read(value).map_err(|error| format!("column `{name}`: {error}"))?,
                    };
                    Ok((name, value))
                });
                Ok(Found(columns.collect::<deserialize::Result<_>>()?))
            }
        }
    };
}

found!("sqlite", diesel::sqlite::Sqlite, sqlite::read);
found!("postgres", diesel::pg::Pg, postgres::read);
found!("mysql", diesel::mysql::Mysql, mysql::read);

/// Text where it is one, and a list of bytes otherwise.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn text_or_bytes(bytes: &[u8]) -> Json {
    std::str::from_utf8(bytes).map_or_else(|_| Json::from(bytes), Json::from)
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use diesel::{
        deserialize::{self, FromSql},
        sql_types::{BigInt, Binary, Double, Text},
        sqlite::{Sqlite, SqliteType, SqliteValue},
    };

    use super::Json;

    pub(super) fn read(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Json> {
        Ok(match value.value_type() {
            None => Json::Null,
            Some(SqliteType::Text) => Json::from(<String as FromSql<Text, Sqlite>>::from_sql(value)?),
            Some(SqliteType::Binary) => Json::from(<Vec<u8> as FromSql<Binary, Sqlite>>::from_sql(value)?),
            Some(SqliteType::Float | SqliteType::Double) => {
                Json::from(<f64 as FromSql<Double, Sqlite>>::from_sql(value)?)
            }
            Some(_) => Json::from(<i64 as FromSql<BigInt, Sqlite>>::from_sql(value)?),
        })
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use diesel::{
        deserialize::{self, FromSql},
        pg::{Pg, PgValue},
        sql_types::{BigInt, Bool, Double, Float, Integer, SmallInt},
    };

    use super::{Json, text_or_bytes};

    /// By the numbers that types have in every PostgreSQL.
    pub(super) fn read(value: PgValue<'_>) -> deserialize::Result<Json> {
        Ok(match value.get_oid().get() {
            16 => Json::from(<bool as FromSql<Bool, Pg>>::from_sql(value)?),
            20 => Json::from(<i64 as FromSql<BigInt, Pg>>::from_sql(value)?),
            21 => Json::from(<i16 as FromSql<SmallInt, Pg>>::from_sql(value)?),
            23 => Json::from(<i32 as FromSql<Integer, Pg>>::from_sql(value)?),
            700 => Json::from(<f32 as FromSql<Float, Pg>>::from_sql(value)?),
            701 => Json::from(<f64 as FromSql<Double, Pg>>::from_sql(value)?),
            17 => Json::from(value.as_bytes()),
            // name, text, json, unknown, char(n), varchar.
            19 | 25 | 114 | 705 | 1042 | 1043 => text_or_bytes(value.as_bytes()),
            other => {
                return Err(format!(
                    "it is of a type that a lookup does not read ({other}): cast it to text in the statement, `CAST(.. AS text)`"
                )
                .into());
            }
        })
    }
}

#[cfg(feature = "mysql")]
mod mysql {
    use diesel::{
        deserialize::{self, FromSql},
        mysql::{Mysql, MysqlType, MysqlValue},
        sql_types::{BigInt, Double, Unsigned},
    };

    use super::{Json, text_or_bytes};

    pub(super) fn read(value: MysqlValue<'_>) -> deserialize::Result<Json> {
        Ok(match value.value_type() {
            MysqlType::Tiny | MysqlType::Short | MysqlType::Long | MysqlType::LongLong => {
                Json::from(<i64 as FromSql<BigInt, Mysql>>::from_sql(value)?)
            }
            MysqlType::UnsignedTiny
            | MysqlType::UnsignedShort
            | MysqlType::UnsignedLong
            | MysqlType::UnsignedLongLong => {
                Json::from(<u64 as FromSql<Unsigned<BigInt>, Mysql>>::from_sql(value)?)
            }
            MysqlType::Float | MysqlType::Double => {
                Json::from(<f64 as FromSql<Double, Mysql>>::from_sql(value)?)
            }
            MysqlType::Numeric | MysqlType::String | MysqlType::Blob | MysqlType::Enum | MysqlType::Set => {
                text_or_bytes(value.as_bytes())
            }
            other => {
                return Err(format!(
                    "it is of a type that a lookup does not read ({other:?}): cast it to text in the statement, `CAST(.. AS CHAR)`"
                )
                .into());
            }
        })
    }
}
