//! A fresh database for each scenario, and questions to it.

use std::path::Path;

use flow::sql::{
    diesel::{
        self, Connection as _, QueryableByName, SqliteConnection, mysql::Mysql, pg::Pg, sql_types,
        sqlite::Sqlite,
    },
    diesel_async::{AsyncConnection as _, AsyncMysqlConnection, AsyncPgConnection, RunQueryDsl as AsyncRun},
};

use crate::servers::address;

/// A database that the job writes to.
pub(crate) struct Database {
    pub(crate) url: String,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = sql_types::BigInt)]
    number: i64,
}

/// A word and its count.
#[derive(QueryableByName)]
pub(crate) struct Counted {
    #[diesel(sql_type = sql_types::Text)]
    pub(crate) word: String,
    #[diesel(sql_type = sql_types::BigInt)]
    pub(crate) n: i64,
}

impl Database {
    pub(crate) fn mariadb(name: &str) -> Self {
        Self::fresh(&address("FLOW_TEST_MARIADB"), name)
    }

    pub(crate) fn postgres(name: &str) -> Self {
        Self::fresh(&address("FLOW_TEST_POSTGRES"), name)
    }

    pub(crate) fn sqlite(directory: &Path) -> Self {
        Database { url: format!("sqlite:{}", directory.join("test.db").display()) }
    }

    fn fresh(server: &str, name: &str) -> Self {
        let name = format!("flow_{name}");
        let server_database = Database { url: server.to_owned() };
        server_database.run(&format!("DROP DATABASE IF EXISTS {name}"));
        server_database.run(&format!("CREATE DATABASE {name}"));
        let (before, _) = server.rsplit_once('/').expect("a URL with a database");
        Database { url: format!("{before}/{name}") }
    }

    fn run(&self, statement: &str) {
        let query = diesel::sql_query(statement);
        let done = runtime().block_on(async {
            if self.url.starts_with("postgres") {
                let mut connection =
                    AsyncPgConnection::establish(&self.url).await.expect("PostgreSQL answers");
                AsyncRun::execute(query, &mut connection).await
            } else {
                let mut connection =
                    AsyncMysqlConnection::establish(&self.url).await.expect("MariaDB answers");
                AsyncRun::execute(query, &mut connection).await
            }
        });
        done.expect("the statement is right");
    }

    /// What a cast to a 64-bit integer names its type.
    pub(crate) fn integer(&self) -> &'static str {
        if self.url.starts_with("mysql") { "SIGNED" } else { "BIGINT" }
    }

    /// A number; `None` while there is no such table yet, or no server.
    pub(crate) fn number(&self, query: &str) -> Option<i64> {
        let rows: Vec<Number> = self.load(query).ok()?;
        rows.into_iter().next().map(|row| row.number)
    }

    /// A column of numbers; none while there is no such table yet.
    pub(crate) fn numbers(&self, query: &str) -> Vec<i64> {
        let rows: Vec<Number> = self.load(query).unwrap_or_default();
        rows.into_iter().map(|row| row.number).collect()
    }

    /// All counted words.
    pub(crate) fn word_counts(&self) -> Vec<Counted> {
        self.load("SELECT word, n FROM word_counts ORDER BY word").expect("the table of words")
    }

    fn load<T>(&self, query: &str) -> Result<Vec<T>, Box<dyn std::error::Error>>
    where
        T: QueryableByName<Sqlite> + QueryableByName<Pg> + QueryableByName<Mysql> + Send + 'static,
    {
        let query = diesel::sql_query(query);
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let mut connection = SqliteConnection::establish(path)?;
            diesel::RunQueryDsl::execute(diesel::sql_query("PRAGMA busy_timeout = 5000"), &mut connection)?;
            return Ok(diesel::RunQueryDsl::load(query, &mut connection)?);
        }
        runtime().block_on(async {
            if self.url.starts_with("postgres") {
                let mut connection = AsyncPgConnection::establish(&self.url).await?;
                Ok(AsyncRun::load(query, &mut connection).await?)
            } else {
                let mut connection = AsyncMysqlConnection::establish(&self.url).await?;
                Ok(AsyncRun::load(query, &mut connection).await?)
            }
        })
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
