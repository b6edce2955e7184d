//! Rows per second of the SQL sinks, in ledger mode unless said: SQLite in a temporary folder, and each server whose URL
//! is in the environment (`eval "$(tests/services/env)"`).
//!
//! ```text
//! cargo bench -p flow-runtime --features sqlite,postgres,mysql --bench sql_sinks
//! ```

use std::{future::Future, time::Instant};

use flow_runtime::{
    checkpoint::CheckpointId,
    connectors::sql::{self, Backend, DatabaseUrl, Transaction},
    sink::{Sink, SinkBuffer, SinkCommitter, SinkContext, SinkWriter, Write},
};

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("bench.db").display());
    let variable = |name| std::env::var(name).ok();
    let databases = [
        ("SQLite", Some(sqlite)),
        ("PostgreSQL", variable("FLOW_TEST_POSTGRES")),
        ("MariaDB", variable("FLOW_TEST_MARIADB")),
    ];
    println!(
        "{:<12}{:>16}{:>16}{:>16}{:>16}{:>16}{:>16}",
        "", "insert", "upsert", "upsert 10k keys", "execute", "apply", "insert prepared"
    );
    for (name, url) in databases {
        let Some(url) = url else {
            println!("{name:<12}not in the environment");
            continue;
        };
        let url = DatabaseUrl::from(url);
        print!("{name:<12}");
        for rate in [insert(&url).await, upsert(&url, 200_000).await, upsert(&url, 10_000).await] {
            print!("{rate:>16.0}");
        }
        print!("{:>16.0}{:>16.0}", execute(&url).await, apply(&url).await);
        match url.backend() {
            Some(Backend::Sqlite) => println!("{:>16}", "-"),
            _ => println!("{:>16.0}", insert_prepared(&url).await),
        }
    }
}

fn words(rows: u64, keys: u64) -> impl Iterator<Item = (String, u64)> {
    (0..rows).map(move |i| (format!("word{}", i.wrapping_mul(7919) % keys), i))
}

fn fresh(columns: &str, table: &str) -> [String; 2] {
    [format!("DROP TABLE IF EXISTS {table}"), format!("CREATE TABLE {table} ({columns})")]
}

const ROWS: u64 = 200_000;

async fn insert(url: &DatabaseUrl) -> f64 {
    let [drop, create] = fresh("word VARCHAR(50), n BIGINT", "bench_insert");
    let sink = sql::insert(url, "bench_insert").columns(["word", "n"]).prepare(drop).prepare(create);
    run(sink, words(ROWS, ROWS)).await
}

async fn insert_prepared(url: &DatabaseUrl) -> f64 {
    let [drop, create] = fresh("word VARCHAR(50), n BIGINT", "bench_prepared");
    let sink = sql::insert(url, "bench_prepared").columns(["word", "n"]).prepare(drop).prepare(create);
    run(sink.prepared_transactions(), words(ROWS, ROWS)).await
}

async fn upsert(url: &DatabaseUrl, keys: u64) -> f64 {
    let [drop, create] = fresh("word VARCHAR(50) PRIMARY KEY, n BIGINT", "bench_upsert");
    let sink = sql::upsert(url, "bench_upsert").key(["word"]).columns(["word", "n"]);
    run(sink.prepare(drop).prepare(create), words(ROWS, keys)).await
}

fn hot(table: &str) -> [String; 3] {
    let [drop, create] = fresh("id BIGINT PRIMARY KEY, total BIGINT NOT NULL", table);
    [drop, create, format!("INSERT INTO {table} VALUES (1, 0)")]
}

async fn execute(url: &DatabaseUrl) -> f64 {
    let sink = sql::execute(url, "UPDATE bench_execute SET total = total + ? WHERE id = 1");
    let sink = hot("bench_execute").into_iter().fold(sink, sql::Execute::prepare);
    run(sink, 0..20_000i64).await
}

async fn apply(url: &DatabaseUrl) -> f64 {
    let sink = sql::apply(url, async |tx: &mut Transaction, rows: &[i64]| {
        let sum: i64 = rows.iter().sum();
        tx.sql("UPDATE bench_apply SET total = total + ? WHERE id = 1", sum).await?;
        Ok(())
    });
    let sink = hot("bench_apply").into_iter().fold(sink, sql::Apply::prepare);
    run(sink, 0..2_000_000i64).await
}

/// Everything but the making of the records, in epochs of a tenth each.
fn run<S: Sink, T>(sink: S, records: impl Iterator<Item = T>) -> impl Future<Output = f64>
where
    S::Buffer: Write<T>,
{
    let records: Vec<T> = records.collect();
    async move {
        let cx = SinkContext::new(
            format!("bench-{}", std::process::id()),
            std::any::type_name::<S>().len().to_string(),
        );
        sink.recover(&cx, Vec::new()).await.unwrap();
        let (mut writer, mut committer) = sink.open(&cx).await.unwrap();
        let mut buffer = sink.buffer(&cx);
        let (rows, mut checkpoint) = (records.len(), 0);
        let started = Instant::now();
        for (i, record) in records.into_iter().enumerate() {
            buffer.write(record).unwrap();
            let end = (i + 1) % (rows / 10) == 0;
            if buffer.is_full() || end {
                writer.write(&mut buffer).await.unwrap();
                buffer.clear();
            }
            if end {
                checkpoint += 1;
                if let Some(handle) = writer.pre_commit(CheckpointId(checkpoint)).await.unwrap() {
                    committer.commit(CheckpointId(checkpoint), &handle).await.unwrap();
                }
            }
        }
        rows as f64 / started.elapsed().as_secs_f64()
    }
}
