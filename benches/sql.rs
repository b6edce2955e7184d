//! Rows into SQL databases, exactly once, beside loops written by hand on drivers: batches of rows in a transaction that
//! is committed each second. SQLite is a file; the servers are those of `FLOW_TEST_POSTGRES` and `FLOW_TEST_MARIADB`, or
//! else the tests' own.

mod common;

use std::time::{Duration, Instant};

use common::{Bench, check, service, size};
use diesel::{Connection as _, ExpressionMethods as _, RunQueryDsl as _, SqliteConnection, sql_types};
use flow::{collection, pipeline, sql, worker};
use mysql_async::prelude::Queryable as _;
use tokio_postgres::error::SqlState;

/// How often the loops commit, and the job takes a checkpoint.
const INTERVAL: Duration = Duration::from_secs(1);
/// Rows of a statement with a parameter for each value: a server takes 65,535 of them.
const ROWS: usize = 1000;
const DROP: &str = "DROP TABLE IF EXISTS flow_bench";
/// Which checkpoints jobs have written and committed: those of an earlier run would tell this one that its rows are
/// there already. Rows of other jobs stay, of which some may be locked.
const FORGET: [&str; 2] = [
    "DELETE FROM flow_ledger WHERE job = 'by_ledger'",
    "DELETE FROM flow_transactions WHERE job = 'prepared'",
];
const CREATE: &str = "CREATE TABLE flow_bench (word VARCHAR(50), n BIGINT)";

fn row(n: u64) -> (String, i64) {
    (format!("word{}", n.wrapping_mul(7919) % 1_000_003), n as i64)
}

fn rows(records: u64) -> impl Iterator<Item = (String, i64)> + Send {
    (0..records).map(row)
}

#[pipeline(guarantee = exactly_once)]
fn by_ledger(url: &str, records: u64) {
    let rows = source(collection::range(0..records)).map(row);
    rows.sink(sql::insert(url, "flow_bench").columns(["word", "n"]).prepare(DROP).prepare(CREATE));
}

#[pipeline(guarantee = exactly_once)]
fn prepared(url: &str, records: u64) {
    let rows = source(collection::range(0..records)).map(row);
    let sink = sql::insert(url, "flow_bench").columns(["word", "n"]).prepare(DROP).prepare(CREATE);
    rows.sink(sink.prepared_transactions());
}

fn flow(url: &str, records: u64, transactions: bool, parallelism: usize) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let set = |mut config: worker::Config| {
        config.checkpoint_interval = Some(INTERVAL);
        config.checkpoint_dir = Some(folder.path().display().to_string());
        config
    };
    if transactions {
        let job = prepared(url, records);
        worker::run(&job, &set(worker::Config::with_parallelism(job.plan(), parallelism)))
            .expect("the job runs");
    } else {
        let job = by_ledger(url, records);
        worker::run(&job, &set(worker::Config::with_parallelism(job.plan(), parallelism)))
            .expect("the job runs");
    }
}

diesel::table! {
    /// What all ways write.
    flow_bench (n) {
        /// A word.
        word -> Text,
        /// The number of the row.
        n -> BigInt,
    }
}

/// A statement per row, prepared once, which is the fastest way into SQLite.
fn sqlite_by_hand(url: &str, records: u64) {
    use flow_bench::dsl;
    let mut connection = SqliteConnection::establish(url).expect("a file");
    for statement in ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", DROP, CREATE] {
        diesel::sql_query(statement).execute(&mut connection).expect("a statement");
    }
    let mut rows = rows(records).peekable();
    while rows.peek().is_some() {
        let began = Instant::now();
        let insert = |connection: &mut SqliteConnection| -> diesel::QueryResult<()> {
            while began.elapsed() < INTERVAL {
                let batch: Vec<_> =
                    rows.by_ref().take(ROWS).map(|(word, n)| (dsl::word.eq(word), dsl::n.eq(n))).collect();
                if batch.is_empty() {
                    break;
                }
                diesel::insert_into(dsl::flow_bench).values(&batch).execute(connection)?;
            }
            Ok(())
        };
        connection.transaction(insert).expect("a transaction");
    }
}

fn clear_sqlite(url: &str) {
    let mut connection = SqliteConnection::establish(url).expect("a file");
    for statement in [DROP, "DROP TABLE IF EXISTS flow_ledger", "VACUUM"] {
        diesel::sql_query(statement).execute(&mut connection).expect("a statement");
    }
}

fn in_sqlite(url: &str) -> u64 {
    let mut connection = SqliteConnection::establish(url).expect("a file");
    let [count, sum] =
        ["(SELECT COUNT(*) FROM flow_bench)", "(SELECT SUM(n) FROM flow_bench)"].map(|query| {
            let query = diesel::select(diesel::dsl::sql::<sql_types::BigInt>(query));
            query.get_result::<i64>(&mut connection).expect("a number")
        });
    check(count as u64, sum as u64)
}

/// A parameter per column, which is an array.
async fn postgres_by_hand(url: &str, records: u64) {
    let mut client = postgres(url).await;
    client.batch_execute(&format!("{DROP}; {CREATE}")).await.expect("a table");
    let text = "INSERT INTO flow_bench SELECT * FROM unnest($1::varchar[], $2::bigint[])";
    let statement = client.prepare(text).await.expect("a statement");
    let mut rows = rows(records).peekable();
    while rows.peek().is_some() {
        let (began, transaction) = (Instant::now(), client.transaction().await.expect("a transaction"));
        while began.elapsed() < INTERVAL {
            let (words, numbers): (Vec<String>, Vec<i64>) = rows.by_ref().take(10 * ROWS).unzip();
            if words.is_empty() {
                break;
            }
            transaction.execute(&statement, &[&words, &numbers]).await.expect("rows");
        }
        transaction.commit().await.expect("a commit");
    }
}

async fn clear_postgres(url: &str) {
    let client = postgres(url).await;
    client.batch_execute(DROP).await.expect("no table");
    for statement in FORGET {
        if let Err(error) = client.batch_execute(statement).await {
            assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE), "{error}");
        }
    }
}

async fn in_postgres(url: &str) -> u64 {
    let query = "SELECT COUNT(*), CAST(SUM(n) AS BIGINT) FROM flow_bench";
    let row = postgres(url).await.query_one(query, &[]).await.expect("a row");
    check(row.get::<_, i64>(0) as u64, row.get::<_, i64>(1) as u64)
}

async fn postgres(url: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// A parameter per value, as many as a statement takes.
async fn mariadb_by_hand(url: &str, records: u64) {
    let mut connection = mariadb(url).await;
    for statement in [DROP, CREATE] {
        connection.query_drop(statement).await.expect("a table");
    }
    let text = |rows: usize| format!("INSERT INTO flow_bench VALUES {}", vec!["(?, ?)"; rows].join(", "));
    let whole = connection.prep(text(ROWS)).await.expect("a statement");
    let mut rows = rows(records).peekable();
    while rows.peek().is_some() {
        let began = Instant::now();
        connection.query_drop("BEGIN").await.expect("a transaction");
        while began.elapsed() < INTERVAL {
            let values = rows.by_ref().take(ROWS).flat_map(|(word, n)| [word.into(), n.into()]);
            let values: Vec<mysql_async::Value> = values.collect();
            match values.len() / 2 {
                0 => break,
                ROWS => connection.exec_drop(&whole, values).await.expect("rows"),
                rest => connection.exec_drop(text(rest), values).await.expect("rows"),
            }
        }
        connection.query_drop("COMMIT").await.expect("a commit");
    }
}

async fn clear_mariadb(url: &str) {
    const NO_SUCH_TABLE: u16 = 1146;
    let mut connection = mariadb(url).await;
    connection.query_drop(DROP).await.expect("no table");
    for statement in FORGET {
        match connection.query_drop(statement).await {
            Err(mysql_async::Error::Server(error)) if error.code == NO_SUCH_TABLE => {}
            result => result.expect("the rows of an earlier run go"),
        }
    }
}

async fn in_mariadb(url: &str) -> u64 {
    let query = "SELECT COUNT(*), CAST(SUM(n) AS UNSIGNED) FROM flow_bench";
    let row: Option<(u64, u64)> = mariadb(url).await.query_first(query).await.expect("a row");
    row.map(|(count, sum)| check(count, sum)).expect("a row")
}

async fn mariadb(url: &str) -> mysql_async::Conn {
    mysql_async::Conn::from_url(url).await.expect("a connection")
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn main() {
    let records = size("FLOW_BENCH_RECORDS", 4_000_000);
    let file = std::env::temp_dir().join("flow-bench.db").display().to_string();
    let [postgres, mariadb] = ["FLOW_TEST_POSTGRES", "FLOW_TEST_MARIADB"].map(service);
    let mut bench = Bench::new(
        "sql",
        "Rows of a word and a number into a table without an index, on this machine. The processor time is that of the \
         client; the server's is on top of it.",
    );
    let of = |url: &String, run: fn(&str, u64)| {
        let url = url.clone();
        move |()| run(&url, records)
    };
    let then = |url: &String, run: fn(&str) -> u64| {
        let url = url.clone();
        move |()| run(&url)
    };
    let first = |url: &String, run: fn(&str)| {
        let url = url.clone();
        move || run(&url)
    };
    let ledger: fn(&str, u64) = |url, records| flow(url, records, false, 1);
    let prepared: fn(&str, u64) = |url, records| flow(url, records, true, 1);
    let by_two: fn(&str, u64) = |url, records| flow(url, records, false, 2);
    let prepared_by_two: fn(&str, u64) = |url, records| flow(url, records, true, 2);
    let clear = || first(&file, clear_sqlite);
    bench
        .case("insert, SQLite", records)
        .checked("floor: by hand", clear(), of(&file, sqlite_by_hand), then(&file, in_sqlite))
        .checked(
            "flow, parallelism 1",
            clear(),
            of(&format!("sqlite:{file}"), ledger),
            then(&file, in_sqlite),
        )
        .checked(
            "flow, parallelism 2",
            clear(),
            of(&format!("sqlite:{file}"), by_two),
            then(&file, in_sqlite),
        );
    let clear = || first(&postgres, |url| wait(clear_postgres(url)));
    let by_hand: fn(&str, u64) = |url, records| wait(postgres_by_hand(url, records));
    let look: fn(&str) -> u64 = |url| wait(in_postgres(url));
    bench
        .case("insert, PostgreSQL", records)
        .checked("floor: by hand", clear(), of(&postgres, by_hand), then(&postgres, look))
        .checked("flow, parallelism 1", clear(), of(&postgres, ledger), then(&postgres, look))
        .checked(
            "flow, parallelism 1, prepared transactions",
            clear(),
            of(&postgres, prepared),
            then(&postgres, look),
        )
        .checked("flow, parallelism 2", clear(), of(&postgres, by_two), then(&postgres, look))
        .checked(
            "flow, parallelism 2, prepared transactions",
            clear(),
            of(&postgres, prepared_by_two),
            then(&postgres, look),
        );
    let clear = || first(&mariadb, |url| wait(clear_mariadb(url)));
    let by_hand: fn(&str, u64) = |url, records| wait(mariadb_by_hand(url, records));
    let look: fn(&str) -> u64 = |url| wait(in_mariadb(url));
    bench
        .case("insert, MariaDB", records)
        .checked("floor: by hand", clear(), of(&mariadb, by_hand), then(&mariadb, look))
        .checked("flow, parallelism 1", clear(), of(&mariadb, ledger), then(&mariadb, look))
        .checked(
            "flow, parallelism 1, prepared transactions",
            clear(),
            of(&mariadb, prepared),
            then(&mariadb, look),
        )
        .checked("flow, parallelism 2", clear(), of(&mariadb, by_two), then(&mariadb, look))
        .checked(
            "flow, parallelism 2, prepared transactions",
            clear(),
            of(&mariadb, prepared_by_two),
            then(&mariadb, look),
        );
    bench.run();
}
