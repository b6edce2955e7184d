//! A server that is killed, again and again, while epochs are committed.

use std::{
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use flow_runtime::{
    connectors::sql,
    sink::{Sink, Write},
};

use crate::{
    database::{Database, MARIADB_UP, POSTGRES_UP},
    job::{Carried, Job, Start},
};

fn control(service: &str, verb: &str) {
    let services =
        std::env::var("FLOW_TEST_SERVICES").expect("FLOW_TEST_SERVICES: eval \"$(tests/services/env)\"");
    let status = Command::new(Path::new(&services).join("ctl")).args([service, verb]).status().unwrap();
    assert!(status.success(), "{service} {verb}");
}

/// Says that the kills are over, also when one of them has failed.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

const KILLS: u32 = 6;
const SUBTASKS: usize = 2;

/// Two subtasks add to a row, epoch by epoch, while the server dies. Every few epochs the job dies too, between pre-commit
/// and commit, and starts again from the handles.
async fn totals_are_exact<S: Sink + Clone, R>(
    db: Database,
    service: &'static str,
    sink: impl FnOnce(&str) -> S,
    record: impl Fn(usize) -> R,
) where
    S::Buffer: Write<R>,
{
    let table = db.table("id INTEGER NOT NULL PRIMARY KEY, total BIGINT NOT NULL").await;
    db.run(&format!("INSERT INTO {table} VALUES (1, 0), (2, 0)")).await;
    let over = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&over);
    let killer = tokio::task::spawn_blocking(move || {
        let _over = Over(done);
        for i in 0..KILLS {
            std::thread::sleep(Duration::from_millis(900 + u64::from(i * 37 % 11) * 60));
            control(service, "kill");
            control(service, "start");
        }
    });

    let sink = sink(&table);
    let (mut attempt, mut checkpoint, mut written) = (1, 0, 0);
    let mut carried: Vec<Carried> = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let restored = (checkpoint > 0).then_some(checkpoint);
        let start = Start { attempt, parallelism: SUBTASKS, restored };
        attempt += 1;
        let Ok(job) = Job::start(sink.clone(), &table, start, &carried).await else {
            // The server is away.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        carried.clear();
        let mut subtasks = job.into_subtasks();
        for epoch in 0..40 {
            checkpoint += 1;
            let mut handles = Vec::new();
            for subtask in &mut subtasks {
                let index = subtask.cx.subtask;
                subtask.write((0..10).map(|_| record(index))).await.unwrap();
                handles.push(subtask.pre_commit(checkpoint).await.unwrap());
                written += 10;
            }
            let last = epoch == 39 || over.load(Ordering::SeqCst);
            let committing = subtasks.iter_mut().zip(&handles).map(|(subtask, handle)| async move {
                if last && subtask.cx.subtask == 0 {
                    // Killed with the commit under way.
                    let commit = subtask.commit(checkpoint, handle);
                    let _ = tokio::time::timeout(Duration::from_micros(500 * (attempt % 7)), commit).await;
                } else if !last {
                    subtask.commit(checkpoint, handle).await.unwrap();
                }
                subtask.carried(checkpoint, handle)
            });
            let all = futures_util::future::join_all(committing).await;
            if last {
                carried = all;
                break;
            }
        }
    }
    killer.await.unwrap();
    let start = Start { attempt, parallelism: 1, restored: Some(checkpoint) };
    Job::start(sink, &table, start, &carried).await.unwrap();
    assert!(checkpoint > 20, "only {checkpoint} epochs");
    assert_eq!(db.number("SUM(total)", &table).await, written);
    println!("{service}: {checkpoint} epochs, {attempt} attempts, {written} rows, {KILLS} kills");
}

/// All subtasks add to the same row.
fn shared(db: &Database) -> impl FnOnce(&str) -> sql::Execute + use<> {
    let url = db.url();
    move |table| sql::execute(url, format!("UPDATE {table} SET total = total + ? WHERE id = 1"))
}

/// Each subtask adds to a row of its own.
fn prepared(db: &Database) -> impl FnOnce(&str) -> sql::Execute<sql::Prepared> + use<> {
    let url = db.url();
    move |table| {
        sql::execute(url, format!("UPDATE {table} SET total = total + ? WHERE id = ?"))
            .prepared_transactions()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_killed() {
    let _down = POSTGRES_UP.write().await;
    let db = Database::postgres();
    let sink = shared(&db);
    totals_are_exact(db, "postgres", sink, |_| 1u64).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_is_killed() {
    let _down = MARIADB_UP.write().await;
    let db = Database::mariadb();
    let sink = shared(&db);
    totals_are_exact(db, "mariadb", sink, |_| 1u64).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_killed_under_prepared_transactions() {
    let _down = POSTGRES_UP.write().await;
    let db = Database::postgres();
    let sink = prepared(&db);
    totals_are_exact(db, "postgres", sink, |subtask| (1u64, subtask + 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_is_killed_under_prepared_transactions() {
    let _down = MARIADB_UP.write().await;
    let db = Database::mariadb();
    let sink = prepared(&db);
    totals_are_exact(db, "mariadb", sink, |subtask| (1u64, subtask + 1)).await;
}
