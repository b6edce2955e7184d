//! The databases, and what a test asks them on the side.

use std::sync::atomic::{AtomicU32, Ordering};

use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::{
    AsyncConnection, AsyncMysqlConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection,
    sync_connection_wrapper::SyncConnectionWrapper,
};
use flow_runtime::connectors::sql::{Backend, DatabaseUrl};
use tokio::sync::RwLock;

/// Held for writing by the tests that kill a server.
pub(crate) static POSTGRES_UP: RwLock<()> = RwLock::const_new(());
pub(crate) static MARIADB_UP: RwLock<()> = RwLock::const_new(());

pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) backend: Backend,
    _folder: Option<tempfile::TempDir>,
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run tests/services/up, and then: eval \"$(tests/services/env)\"")
    })
}

/// Runs the same code on a connection of each database.
macro_rules! with {
    ($database:expr, $connection:ident => $code:expr) => {
        match $database.backend {
            Backend::Sqlite => {
                let path = $database.url.trim_start_matches("sqlite:");
                let mut wrapped =
                    SyncConnectionWrapper::<diesel::SqliteConnection>::establish(path).await.unwrap();
                wrapped.batch_execute("PRAGMA busy_timeout = 20000").await.unwrap();
                let $connection = &mut wrapped;
                $code
            }
            Backend::Postgres => {
                let $connection = &mut AsyncPgConnection::establish(&$database.url).await.unwrap();
                $code
            }
            Backend::Mysql => {
                let $connection = &mut AsyncMysqlConnection::establish(&$database.url).await.unwrap();
                $code
            }
        }
    };
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("test.db").display());
        Database { url, backend: Backend::Sqlite, _folder: Some(folder) }
    }

    pub(crate) fn postgres() -> Self {
        Database { url: variable("FLOW_TEST_POSTGRES"), backend: Backend::Postgres, _folder: None }
    }

    pub(crate) fn postgres_at(url: &str) -> Self {
        Database { url: url.to_owned(), backend: Backend::Postgres, _folder: None }
    }

    pub(crate) fn mariadb() -> Self {
        Database { url: variable("FLOW_TEST_MARIADB"), backend: Backend::Mysql, _folder: None }
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        self.url.as_str().into()
    }

    pub(crate) async fn run(&self, statement: &str) {
        with!(self, c => c.batch_execute(statement).await).unwrap_or_else(|e| panic!("{statement}: {e}"));
    }

    /// The only value of the only row.
    pub(crate) async fn number(&self, expression: &str, from: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Number {
            #[diesel(sql_type = BigInt)]
            n: i64,
        }
        let kind = if self.backend == Backend::Mysql { "SIGNED" } else { "BIGINT" };
        let query = format!("SELECT CAST(COALESCE({expression}, 0) AS {kind}) AS n FROM {from}");
        let numbers: Vec<Number> = with!(self, c => diesel::sql_query(&query).load(c).await)
            .unwrap_or_else(|e| panic!("{query}: {e}"));
        numbers[0].n
    }

    pub(crate) async fn count(&self, table: &str) -> i64 {
        self.number("COUNT(*)", table).await
    }

    /// A table of this name and columns, empty, and of no other test of this run or an earlier one.
    pub(crate) async fn table(&self, columns: &str) -> String {
        let name = unique("t");
        self.run(&format!("CREATE TABLE {name} ({columns})")).await;
        name
    }
}

/// A name that was never used before.
pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{prefix}_{:x}_{}_{}", now.as_micros(), std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
