//! A job that is killed, again and again, in a process of its own. Its checkpoint is a file.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use flow_runtime::{
    connectors::sql::{self, Backend},
    sink::{Sink, Write},
};

use crate::{
    database::{Database, MARIADB_UP, POSTGRES_UP},
    job::{Carried, Job, Start, recover},
};

const VARIABLE: &str = "FLOW_TEST_SQL_JOB";
const SUBTASKS: usize = 2;
const ROWS: u64 = 10;
const KILLS: u32 = 25;

/// The checkpoint, and the handles that it carries.
type Saved = (u64, Vec<(usize, u64, Vec<u8>)>);

fn load(file: &Path) -> (Option<u64>, Vec<Carried>) {
    let Ok(bytes) = std::fs::read(file) else { return (None, Vec::new()) };
    let (checkpoint, handles): Saved = rmp_serde::from_slice(&bytes).unwrap();
    let carried = |(subtask, checkpoint, handle)| Carried { subtask, checkpoint, handle };
    (Some(checkpoint), handles.into_iter().map(carried).collect())
}

fn save(file: &Path, checkpoint: u64, carried: Vec<Carried>) {
    let handles: Vec<_> = carried.into_iter().map(|c| (c.subtask, c.checkpoint, c.handle)).collect();
    let draft = file.with_extension("draft");
    std::fs::write(&draft, rmp_serde::to_vec(&(checkpoint, handles)).unwrap()).unwrap();
    std::fs::rename(draft, file).unwrap();
}

/// All subtasks add to the same row.
fn adder(url: &str, table: &str) -> sql::Execute {
    sql::execute(url, format!("UPDATE {table} SET total = total + ? WHERE id = 1"))
}

/// Each subtask adds to a row of its own.
fn prepared_adder(url: &str, table: &str) -> sql::Execute<sql::Prepared> {
    sql::execute(url, format!("UPDATE {table} SET total = total + ? WHERE id = ?")).prepared_transactions()
}

fn start(restored: Option<u64>) -> Start {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Start { attempt: now.as_nanos() as u64, parallelism: SUBTASKS, restored }
}

/// The job itself: it ends by being killed, or after a while because its parent was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the job that other tests start and kill"]
async fn job() {
    let Ok(variable) = std::env::var(VARIABLE) else { return };
    let [url, table, file, mode] = variable.split('\n').collect::<Vec<_>>()[..] else { panic!("{variable}") };
    let file = PathBuf::from(file);
    match mode {
        "ledger" => run(adder(url, table), table, &file, |_| 1u64).await,
        _ => run(prepared_adder(url, table), table, &file, |subtask| (1u64, subtask + 1)).await,
    }
}

async fn run<S: Sink, R>(sink: S, table: &str, file: &Path, record: impl Fn(usize) -> R)
where
    S::Buffer: Write<R>,
{
    let (restored, carried) = load(file);
    let job = Job::start(sink, table, start(restored), &carried).await.unwrap();
    let mut subtasks = job.into_subtasks();
    for checkpoint in restored.unwrap_or(0) + 1.. {
        let mut handles = Vec::new();
        for subtask in &mut subtasks {
            let index = subtask.cx.subtask;
            subtask.write((0..ROWS).map(|_| record(index))).await.unwrap();
            handles.push(subtask.pre_commit(checkpoint).await.unwrap());
        }
        let carried =
            subtasks.iter().zip(&handles).map(|(s, handle)| s.carried(checkpoint, handle)).collect();
        save(file, checkpoint, carried);
        let commits =
            subtasks.iter_mut().zip(&handles).map(|(subtask, handle)| subtask.commit(checkpoint, handle));
        futures_util::future::try_join_all(commits).await.unwrap();
        assert!(checkpoint < 100_000, "nobody kills me");
    }
}

/// Waits until the job has completed another checkpoint.
async fn moved_on(file: &Path) {
    let before = load(file).0;
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while load(file).0 == before {
        assert!(std::time::Instant::now() < deadline, "the job does not get on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn totals_are_exact(db: Database, mode: &str) {
    let table = db.table("id INTEGER NOT NULL PRIMARY KEY, total BIGINT NOT NULL").await;
    db.run(&format!("INSERT INTO {table} VALUES (1, 0), (2, 0)")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("checkpoint");
    let variable = format!("{}\n{table}\n{}\n{mode}", db.url, file.display());
    for i in 0..KILLS {
        let mut job = Command::new(std::env::current_exe().unwrap())
            .args(["job_kill::job", "--exact", "--ignored"])
            .env(VARIABLE, &variable)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Passwords of PostgreSQL take a debug build half a second.
        let shortest = if db.backend == Backend::Postgres { 500 } else { 60 };
        // It has more to do at its start, and is to be killed there only now and then.
        if mode == "prepared" && i % 4 > 0 {
            moved_on(&file).await;
        }
        tokio::time::sleep(Duration::from_millis(shortest + u64::from(i * 53 % 29) * 9)).await;
        let ended = job.try_wait().unwrap();
        assert!(ended.is_none(), "the job ended by itself: {ended:?}");
        // On Unix that is SIGKILL.
        job.kill().unwrap();
        job.wait().unwrap();
    }
    let (restored, carried) = load(&file);
    let checkpoint = restored.expect("no checkpoint was completed");
    match mode {
        "ledger" => recover(&adder(&db.url, &table), &table, start(restored), &carried).await.unwrap(),
        _ => recover(&prepared_adder(&db.url, &table), &table, start(restored), &carried).await.unwrap(),
    }
    assert_eq!(db.number("SUM(total)", &table).await as u64, checkpoint * ROWS * SUBTASKS as u64);
    println!("{} ({mode}): {checkpoint} checkpoints, {KILLS} kills", db.backend);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite() {
    totals_are_exact(Database::sqlite(), "ledger").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres() {
    let _up = POSTGRES_UP.read().await;
    totals_are_exact(Database::postgres(), "ledger").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb() {
    let _up = MARIADB_UP.read().await;
    totals_are_exact(Database::mariadb(), "ledger").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_on_postgres() {
    let _up = POSTGRES_UP.read().await;
    totals_are_exact(Database::postgres(), "prepared").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_on_mariadb() {
    let _up = MARIADB_UP.read().await;
    totals_are_exact(Database::mariadb(), "prepared").await;
}
