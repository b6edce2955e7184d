//! What holds on every database.

use std::time::Duration;

use diesel::prelude::*;
use flow_runtime::{
    connectors::sql::{self, Backend, Insert, Transaction},
    sink::{CheckpointId, Committed, Recovered, Sink, SinkCommitter, Standing},
};
use serde::{Deserialize, Serialize};

use crate::{
    database::{Database, unique},
    job::{FIRST, Job, Start, context, from, lost, recover},
};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Count<'a> {
    word: &'a str,
    n: u64,
}

const COUNTS: &str = "word VARCHAR(50) NOT NULL, n INTEGER NOT NULL";
const KEYED: &str = "word VARCHAR(50) NOT NULL PRIMARY KEY, n INTEGER NOT NULL";

async fn counts(db: &Database) -> (String, Insert) {
    let table = db.table(COUNTS).await;
    let sink = sql::insert(db.url(), &table).columns(["word", "n"]);
    (table, sink)
}

fn words(n: usize) -> impl Iterator<Item = (String, usize)> {
    (0..n).map(|i| (format!("w{i}"), i))
}

pub(crate) async fn rows_are_there_after_the_commit_and_once(db: &Database) {
    let table = unique("t");
    let sink = sql::insert(db.url(), &table).prepare(format!("CREATE TABLE {table} ({COUNTS})"));
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.write([Count { word: "a", n: 1 }, Count { word: "b", n: 2 }]).await;
    let handle = job.pre_commit(1).await.unwrap();
    assert_eq!(handle.rows(), 2);
    assert_eq!(db.count(&table).await, 0);
    assert_eq!(job.commit(1, &handle).await.unwrap(), Committed::Now);
    assert_eq!(db.count(&table).await, 2);
    assert_eq!(job.commit(1, &handle).await.unwrap(), Committed::Already);
    assert_eq!(db.number("SUM(n)", &table).await, 3);
}

pub(crate) async fn epochs_without_rows_are_skipped(db: &Database) {
    let (table, sink) = counts(db).await;
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    assert!(job.pre_commit(1).await.is_none());
    job.epoch(2, [("a", 1)]).await;
    assert!(job.pre_commit(3).await.is_none());
    // Two checkpoints may be on their way at once.
    job.write([("b", 1)]).await;
    let fourth = job.pre_commit(4).await.unwrap();
    job.write([("c", 1)]).await;
    let fifth = job.pre_commit(5).await.unwrap();
    assert_eq!(job.commit(4, &fourth).await.unwrap(), Committed::Now);
    assert_eq!(job.commit(5, &fifth).await.unwrap(), Committed::Now);
    assert_eq!(job.commit(4, &fourth).await.unwrap(), Committed::Already);
    assert_eq!(db.count(&table).await, 3);
}

pub(crate) async fn a_handle_is_applied_by_another_process(db: &Database) {
    let (table, sink) = counts(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    job.epoch(1, [("a", 1)]).await;
    job.write([("b", 2)]).await;
    let second = job.pre_commit(2).await.unwrap();
    job.write([("c", 3)]).await;
    let third = job.pre_commit(3).await.unwrap();
    let carried = [job.subtask(0).carried(2, &second), job.subtask(0).carried(3, &third)];
    drop(job);

    // The next attempt dies right after it has applied the first of them.
    recover(&sink, &table, from(2, 2), &carried[..1]).await.unwrap();
    assert_eq!(db.count(&table).await, 2);
    // Then it gets through, twice, because the first checkpoint after it never completes.
    for attempt in 3..5 {
        let mut job = Job::start(sink.clone(), &table, from(3, attempt), &carried).await.unwrap();
        assert_eq!(db.number("SUM(n)", &table).await, 6);
        job.write([("lost", 100)]).await;
        assert!(job.pre_commit(4).await.is_some());
    }
    let mut job = Job::start(sink, &table, from(3, 5), &carried).await.unwrap();
    job.epoch(4, [("d", 4)]).await;
    assert_eq!(db.number("SUM(n)", &table).await, 10);
}

pub(crate) async fn an_operator_settles_by_hand(db: &Database) {
    let (table, sink) = counts(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    job.epoch(1, [("a", 1)]).await;
    job.write([("b", 2)]).await;
    let second = job.pre_commit(2).await.unwrap();
    job.write([("c", 3)]).await;
    let third = job.pre_commit(3).await.unwrap();
    let carried = || {
        [(2, &second), (3, &third)].map(|(checkpoint, handle)| Recovered {
            subtask: 0,
            checkpoint: CheckpointId(checkpoint),
            handle: handle.clone(),
        })
    };
    let by_hand = context(&table, from(3, 2), 0);
    for transaction in carried() {
        assert_eq!(sink.standing(&by_hand, &transaction).await.unwrap(), Standing::Pending);
    }
    // To ask is not to take over: the job may be running.
    assert_eq!(job.commit(2, &second).await.unwrap(), Committed::Now);
    drop(job);

    let mut committer = sink.open_committer(&by_hand, &carried()).await.unwrap();
    assert_eq!(committer.commit(CheckpointId(2), &second).await.unwrap(), Committed::Already);
    assert_eq!(db.number("SUM(n)", &table).await, 3);
    let [second, third] = carried();
    assert_eq!(sink.standing(&by_hand, &second).await.unwrap(), Standing::Committed);
    assert_eq!(sink.standing(&by_hand, &third).await.unwrap(), Standing::Pending);
    // The third is given up: checkpoint 4 no longer carries it, and the job goes on from there.
    committer.abort(CheckpointId(3), &third.handle).await.unwrap();
    let mut job = Job::start(sink.clone(), &table, from(4, 3), &[]).await.unwrap();
    job.epoch(5, [("d", 4)]).await;
    assert_eq!(db.number("SUM(n)", &table).await, 7);
    // Where nothing was ever written, nothing is known.
    let elsewhere = context(&unique("other"), from(3, 2), 0);
    assert_eq!(sink.standing(&elsewhere, &third).await.unwrap(), Standing::Unknown);
}

pub(crate) async fn an_earlier_attempt_is_fenced(db: &Database) {
    let (table, sink) = counts(db).await;
    let mut zombie = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    zombie.epoch(1, [("a", 1)]).await;
    zombie.write([("b", 1)]).await;
    let second = zombie.pre_commit(2).await.unwrap();
    let carried = [zombie.subtask(0).carried(2, &second)];

    let mut next = Job::start(sink.clone(), &table, from(2, 2), &carried).await.unwrap();
    let why = lost(zombie.commit(2, &second).await);
    assert!(why.contains("another copy of this job"), "{why}");
    zombie.write([("z", 1)]).await;
    let third = zombie.pre_commit(3).await.unwrap();
    lost(zombie.commit(3, &third).await);
    let cx = zombie.subtask(0).cx.clone();
    let why = sink.open(&cx).await.map(drop).unwrap_err().to_string();
    assert!(why.contains("another copy of this job"), "{why}");

    next.epoch(3, [("c", 1)]).await;
    assert_eq!(db.count(&table).await, 3);
}

pub(crate) async fn a_ledger_ahead_is_refused(db: &Database) {
    let (table, sink) = counts(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    for checkpoint in 1..=3 {
        job.epoch(checkpoint, [("a", 1)]).await;
    }
    let refused = |start| {
        let (sink, table) = (&sink, &table);
        async move { recover(sink, table, start, &[]).await.unwrap_err().to_string() }
    };
    let remedy = |why: &str| why.split_once("run: ").unwrap().1.to_owned();

    let why = refused(from(2, 2)).await;
    assert!(why.contains("up to checkpoint 3") && why.contains("another name"), "{why}");
    // The refused attempt has not taken over.
    job.epoch(4, [("a", 1)]).await;
    db.run(&remedy(&refused(from(2, 3)).await)).await;
    let mut job = Job::start(sink.clone(), &table, from(2, 4), &[]).await.unwrap();
    job.epoch(3, [("a", 1)]).await;
    assert_eq!(db.count(&table).await, 5);

    let why = refused(Start { attempt: 5, ..FIRST }).await;
    assert!(why.contains("from no checkpoint"), "{why}");
    recover(&sink, &unique("other"), Start { attempt: 6, ..FIRST }, &[]).await.unwrap();
    db.run(&remedy(&why)).await;
    let mut job = Job::start(sink.clone(), &table, Start { attempt: 7, ..FIRST }, &[]).await.unwrap();
    job.epoch(1, [("a", 1)]).await;
    assert_eq!(db.count(&table).await, 6);
}

pub(crate) async fn an_emptied_ledger_is_refused(db: &Database) {
    let (table, sink) = counts(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    job.epoch(1, [("a", 1)]).await;
    job.write([("b", 1)]).await;
    let handle = job.pre_commit(2).await.unwrap();
    let carried = [job.subtask(0).carried(2, &handle)];
    db.run(&format!("DELETE FROM flow_ledger WHERE job = '{table}'")).await;
    let why = lost(job.commit(2, &handle).await);
    assert!(why.contains("is gone"), "{why}");

    let why = recover(&sink, &table, from(2, 2), &carried).await.unwrap_err().to_string();
    assert!(why.contains("is this another database"), "{why}");
    let insert = why.split_once("to write them, run: ").unwrap().1.split_once("; to leave").unwrap().0;
    db.run(insert).await;
    recover(&sink, &table, from(2, 3), &carried).await.unwrap();
    assert_eq!(db.count(&table).await, 2);

    // Restored from a backup that is too old.
    db.run(&format!("UPDATE flow_ledger SET epoch = 0 WHERE job = '{table}'")).await;
    let why = recover(&sink, &table, from(2, 4), &carried).await.unwrap_err().to_string();
    assert!(why.contains("backup"), "{why}");
}

pub(crate) async fn every_process_may_recover(db: &Database) {
    let (table, sink) = counts(db).await;
    let start = Start { parallelism: 2, ..FIRST };
    let mut job = Job::start(sink.clone(), &table, start, &[]).await.unwrap();
    job.epoch(1, [("a", 1)]).await;
    recover(&sink, &table, start, &[]).await.unwrap();
    job.epoch(2, [("b", 1)]).await;
    assert_eq!(db.count(&table).await, 2);
}

pub(crate) async fn a_job_may_be_rescaled(db: &Database) {
    let (table, sink) = counts(db).await;
    let start = Start { parallelism: 3, ..FIRST };
    let mut job = Job::start(sink.clone(), &table, start, &[]).await.unwrap();
    let mut carried = Vec::new();
    for subtask in 0..3 {
        let subtask = job.subtask(subtask);
        subtask.write([("a", 1)]).await.unwrap();
        let first = subtask.pre_commit(1).await.unwrap();
        subtask.commit(1, &first).await.unwrap();
        subtask.write([("b", 1)]).await.unwrap();
        let second = subtask.pre_commit(2).await.unwrap();
        carried.push(subtask.carried(2, &second));
    }
    let mut one = Job::start(sink.clone(), &table, from(2, 2), &carried).await.unwrap();
    assert_eq!(db.count(&table).await, 6);
    one.epoch(3, [("c", 1)]).await;

    let five = Start { attempt: 3, parallelism: 5, restored: Some(3) };
    let mut job = Job::start(sink, &table, five, &[]).await.unwrap();
    for subtask in 0..5 {
        let subtask = job.subtask(subtask);
        subtask.write([("d", 1)]).await.unwrap();
        let handle = subtask.pre_commit(4).await.unwrap();
        assert_eq!(subtask.commit(4, &handle).await.unwrap(), Committed::Now);
    }
    assert_eq!(db.count(&table).await, 12);
}

pub(crate) async fn an_upsert_keeps_the_last_row(db: &Database) {
    let table = db.table(KEYED).await;
    let sink = sql::upsert(db.url(), &table).key(["word"]);
    for attempt in 1..3 {
        let mut job = Job::start(sink.clone(), &table, Start { attempt, ..FIRST }, &[]).await.unwrap();
        let names: Vec<_> = words(1500).map(|(word, _)| word).collect();
        let rounds = (0..3).flat_map(|round| names.iter().map(move |word| Count { word, n: round }));
        job.write(rounds).await;
        assert!(job.pre_commit(1).await.is_none());
        assert_eq!(db.count(&table).await, 1500);
        assert_eq!(db.number("SUM(n)", &table).await, 3000);
    }
}

pub(crate) async fn an_upsert_may_use_the_ledger(db: &Database) {
    let table = db.table(KEYED).await;
    let sink = sql::upsert(db.url(), &table).key(["word"]).columns(["n", "word"]).ledger();
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.write([Count { word: "a", n: 1 }, Count { word: "b", n: 1 }, Count { word: "a", n: 2 }]).await;
    let handle = job.pre_commit(1).await.unwrap();
    assert_eq!(db.count(&table).await, 0);
    job.commit(1, &handle).await.unwrap();
    job.epoch(2, [Count { word: "b", n: 5 }]).await;
    assert_eq!(job.commit(1, &handle).await.unwrap(), Committed::Already);
    assert_eq!(db.number("SUM(n)", &table).await, 7);
}

pub(crate) async fn a_key_may_have_several_columns(db: &Database) {
    let table = db.table("a INTEGER NOT NULL, b INTEGER NOT NULL, PRIMARY KEY (a, b)").await;
    let sink = sql::upsert(db.url(), &table).key(["b", "a"]).columns(["a", "b"]);
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.write([(1, 2), (1, 3), (1, 2)]).await;
    job.write([(1, 2), (2, 1)]).await;
    assert_eq!(db.count(&table).await, 3);
}

pub(crate) async fn many_rows_are_many_batches(db: &Database) {
    let (table, sink) = counts(db).await;
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.epoch(1, words(12_345)).await;
    assert_eq!(db.count(&table).await, 12_345);
    assert_eq!(db.number("SUM(n)", &table).await, 12_345 * 12_344 / 2);
    assert_eq!(db.number("COUNT(DISTINCT word)", &table).await, 12_345);

    // More columns than a thousand rows can have parameters for.
    let names: Vec<_> = (0..70).map(|i| format!("c{i}")).collect();
    let table = db.table(&names.iter().map(|n| format!("{n} INTEGER")).collect::<Vec<_>>().join(", ")).await;
    let sink = sql::insert(db.url(), &table).columns(names);
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.epoch(1, (0..1500).map(|i| vec![i; 70])).await;
    assert_eq!(db.number("SUM(c69)", &table).await, 1500 * 1499 / 2);
}

pub(crate) async fn a_row_that_is_refused_is_named(db: &Database) {
    let table = db.table(KEYED).await;
    let sink = sql::insert(db.url(), &table).columns(["word", "n"]);
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    job.epoch(1, [("taken", 0)]).await;
    job.write(words(1200)).await;
    job.write([("taken", 1)]).await;
    job.write(words(1500).skip(1200)).await;
    let handle = job.pre_commit(2).await.unwrap();
    for _ in 0..2 {
        let why = lost(job.commit(2, &handle).await);
        assert!(why.contains("row 1201 of 1501") && why.contains(&table), "{why}");
        assert_eq!(db.count(&table).await, 1);
    }
    let carried = [job.subtask(0).carried(2, &handle)];
    let why = recover(&sink, &table, from(2, 2), &carried).await.unwrap_err().to_string();
    assert!(why.contains("row 1201 of 1501"), "{why}");
    db.run(&format!("DELETE FROM {table}")).await;
    recover(&sink, &table, from(2, 3), &carried).await.unwrap();
    assert_eq!(db.count(&table).await, 1501);
}

pub(crate) async fn at_least_once_writes_at_once(db: &Database) {
    let table = db.table(KEYED).await;
    let sink = sql::insert(db.url(), &table).columns(["word", "n"]).at_least_once();
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.write(words(1001)).await;
    assert_eq!(db.count(&table).await, 1001);
    let why = job.subtask(0).write([("x", 1), ("w7", 1)]).await.unwrap_err().to_string();
    assert!(why.contains("row 2 of 2"), "{why}");
    assert_eq!(db.count(&table).await, 1001);

    let statement = format!("UPDATE {table} SET n = n + ? WHERE word = ?");
    let mut job =
        Job::start(sql::execute(db.url(), statement).at_least_once(), &table, FIRST, &[]).await.unwrap();
    job.write([(5, "w0"), (6, "w0"), (7, "w1")]).await;
    assert_eq!(db.number("SUM(n)", &format!("{table} WHERE word = 'w0'")).await, 11);
}

pub(crate) async fn two_committers_share_a_row(db: &Database) {
    let table = db.table("id INTEGER NOT NULL PRIMARY KEY, total BIGINT NOT NULL").await;
    db.run(&format!("INSERT INTO {table} VALUES (1, 0), (2, 0)")).await;
    let sink = sql::execute(db.url(), format!("UPDATE {table} SET total = total + ? WHERE id = ?"));
    let start = Start { parallelism: 4, ..FIRST };
    let job = Job::start(sink, &table, start, &[]).await.unwrap();
    let tasks: Vec<_> = job
        .into_subtasks()
        .into_iter()
        .map(|mut subtask| {
            tokio::spawn(async move {
                for checkpoint in 1..=5 {
                    // In opposite orders, to meet in deadlocks.
                    let ids = if subtask.cx.subtask % 2 == 0 { [1, 2] } else { [2, 1] };
                    subtask.write(ids.repeat(5).into_iter().map(|id| (1, id))).await.unwrap();
                    let handle = subtask.pre_commit(checkpoint).await.unwrap();
                    subtask.commit(checkpoint, &handle).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(120), task).await.unwrap().unwrap();
    }
    assert_eq!(db.number("SUM(total)", &table).await, 4 * 5 * 10);
}

pub(crate) async fn a_statement_is_run_for_each_record(db: &Database) {
    let table = db.table("id INTEGER NOT NULL PRIMARY KEY, total INTEGER NOT NULL, note VARCHAR(20)").await;
    db.run(&format!("INSERT INTO {table} VALUES (1, 0, 'x'), (2, 0, 'x')")).await;
    let statement = format!("UPDATE {table} SET total = total + ?, note = ? WHERE id = ? -- really?");
    let mut job = Job::start(sql::execute(db.url(), statement), &table, FIRST, &[]).await.unwrap();
    job.epoch(1, [(5, Some("five"), 1), (6, Some("six"), 2), (7, None, 1)]).await;
    assert_eq!(db.number("SUM(total)", &table).await, 18);
    assert_eq!(db.number("total", &format!("{table} WHERE note IS NULL AND id = 1")).await, 12);

    let statement = format!("INSERT INTO {table} (id, total) VALUES (?, 0)");
    let mut job = Job::start(sql::execute(db.url(), statement), &unique("job"), FIRST, &[]).await.unwrap();
    job.write([3, 4, 1, 5]).await;
    let handle = job.pre_commit(1).await.unwrap();
    let why = lost(job.commit(1, &handle).await);
    assert!(why.contains("row 3 of 4"), "{why}");
    assert_eq!(db.count(&table).await, 2);
}

pub(crate) async fn a_closure_gets_batches(db: &Database) {
    let table = db.table("id INTEGER NOT NULL PRIMARY KEY, total BIGINT NOT NULL").await;
    db.run(&format!("INSERT INTO {table} VALUES (1, 0)")).await;
    let statement = format!("UPDATE {table} SET total = total + ? WHERE id = ?");
    let sink = sql::apply(db.url(), async move |tx: &mut Transaction, rows: &[(String, i64)]| {
        assert!(rows.len() <= 1000);
        let sum: i64 = rows.iter().map(|(_, n)| n).sum();
        assert_eq!(tx.sql(&statement, (sum, 1)).await?, 1);
        Ok(())
    })
    .batch(1000);
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.epoch(1, (0..10_500).map(|i| (format!("w{i}"), 1))).await;
    job.epoch(2, &[("x".to_owned(), 5)]).await;
    assert_eq!(db.number("total", &table).await, 10_505);
}

diesel::table! {
    diesel_student (id) {
        id -> BigInt,
        total -> BigInt,
        note -> Nullable<Text>,
    }
}

pub(crate) async fn a_closure_may_use_diesel(db: &Database) {
    use diesel_student::dsl::{diesel_student as student, id, note, total};

    db.run("DROP TABLE IF EXISTS diesel_student").await;
    db.run("CREATE TABLE diesel_student (id BIGINT NOT NULL PRIMARY KEY, total BIGINT NOT NULL, note TEXT)")
        .await;
    let sink = sql::apply(db.url(), async |tx: &mut Transaction, points: &[i64]| {
        let sum: i64 = points.iter().sum();
        if tx.execute(diesel::update(student.find(1)).set(total.eq(total + sum))).await? == 0 {
            tx.execute(diesel::insert_into(student).values((id.eq(1), total.eq(sum)))).await?;
        }
        // What only one database can, and a transaction inside the transaction.
        if let Some(connection) = tx.postgres() {
            use diesel_async::{AsyncConnection, RunQueryDsl};
            connection
                .transaction::<_, diesel::result::Error, _>(async |connection| {
                    let upsert = diesel::insert_into(student)
                        .values((id.eq(1), total.eq(0)))
                        .on_conflict(id)
                        .do_update()
                        .set(note.eq("upserted"));
                    RunQueryDsl::execute(upsert, connection).await
                })
                .await?;
        }
        Ok(())
    });
    let mut job = Job::start(sink, &unique("job"), FIRST, &[]).await.unwrap();
    job.epoch(1, 1..=10).await;
    job.epoch(2, [100]).await;
    assert_eq!(db.number("total", "diesel_student").await, 155);
    if db.backend == Backend::Postgres {
        assert_eq!(db.count("diesel_student WHERE note = 'upserted'").await, 1);
    }
    db.run("DROP TABLE diesel_student").await;
}

pub(crate) async fn a_closure_that_fails_writes_nothing(db: &Database) {
    let table = db.table("id INTEGER NOT NULL PRIMARY KEY").await;
    let statement = format!("INSERT INTO {table} VALUES (?)");
    let sink = sql::apply(db.url(), async move |tx: &mut Transaction, rows: &[i64]| {
        for row in rows {
            tx.sql(&statement, *row).await?;
            if *row == 3 {
                return Err("three is right out".into());
            }
        }
        Ok(())
    });
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.write([1, 2, 3]).await;
    let handle = job.pre_commit(1).await.unwrap();
    let why = lost(job.commit(1, &handle).await);
    assert!(why.contains("three is right out"), "{why}");
    assert_eq!(db.count(&table).await, 0);
}

pub(crate) async fn a_closure_cannot_end_the_transaction(db: &Database) {
    let table = db.table("id INTEGER NOT NULL PRIMARY KEY").await;
    // An error that is swallowed: PostgreSQL then answers COMMIT with a rollback, and reports no error.
    let statement = format!("INSERT INTO {table} VALUES (?)");
    let swallow = statement.clone();
    let sink = sql::apply(db.url(), async move |tx: &mut Transaction, rows: &[i64]| {
        for row in rows {
            let _ = tx.sql(&swallow, *row).await;
        }
        Ok(())
    });
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.write([1, 1, 2]).await;
    let handle = job.pre_commit(1).await.unwrap();
    match job.commit(1, &handle).await {
        Ok(Committed::Now) => assert_eq!(db.count(&table).await, 2),
        other => {
            assert_eq!(db.backend, Backend::Postgres);
            let why = lost(other);
            assert!(why.contains("aborted"), "{why}");
            assert_eq!(db.count(&table).await, 0);
        }
    }

    let sink = sql::apply(db.url(), async move |tx: &mut Transaction, rows: &[i64]| {
        tx.execute(diesel::sql_query("ROLLBACK")).await?;
        tx.sql(&statement, rows[0]).await?;
        Ok(())
    });
    let mut job = Job::start(sink, &unique("job"), FIRST, &[]).await.unwrap();
    job.write([77]).await;
    let handle = job.pre_commit(1).await.unwrap();
    let why = lost(job.commit(1, &handle).await);
    assert!(why.contains("ended the transaction"), "{why}");
}

pub(crate) async fn values_of_every_kind(db: &Database) {
    #[derive(Serialize, Default)]
    struct Kinds {
        flag: Option<bool>,
        small: Option<i16>,
        big: Option<i64>,
        real: Option<f64>,
        price: Option<&'static str>,
        text: Option<String>,
        at: Option<&'static str>,
        tags: Option<Vec<u8>>,
        kind: Option<Kind>,
    }
    #[derive(Serialize)]
    enum Kind {
        Blue,
    }
    let json = if db.backend == Backend::Postgres { "jsonb" } else { "text" };
    let table = db
        .table(&format!(
            "flag BOOLEAN, small SMALLINT, big BIGINT, {real} DOUBLE PRECISION, price NUMERIC(10, 2), text TEXT, \
             at TIMESTAMP NULL, tags {json}, kind VARCHAR(10)",
            real = if db.backend == Backend::Mysql { "`real`" } else { "\"real\"" },
        ))
        .await;
    let mut job = Job::start(sql::insert(db.url(), &table), &table, FIRST, &[]).await.unwrap();
    let full = Kinds {
        flag: Some(true),
        small: Some(-7),
        big: Some(i64::MIN),
        real: Some(0.1),
        price: Some("19.90"),
        text: Some("it's \\ \"añb\" ?".into()),
        at: Some("2024-02-29 12:34:56"),
        tags: Some(vec![1, 2]),
        kind: Some(Kind::Blue),
    };
    job.epoch(1, [Kinds::default(), full, Kinds::default()]).await;
    assert_eq!(db.count(&table).await, 3);
    let found = format!(
        "{table} WHERE flag AND small = -7 AND big = -9223372036854775808 AND price = 19.9 AND kind = 'Blue' \
         AND at = '2024-02-29 12:34:56' AND text LIKE 'it''s %añb%'"
    );
    assert_eq!(db.count(&found).await, 1);
    assert_eq!(db.count(&format!("{table} WHERE flag IS NULL AND tags IS NULL")).await, 2);

    // Through a statement, and with the kinds in the other order.
    let statement = format!("INSERT INTO {table} (price, at, flag, small, tags) VALUES (?, ?, ?, ?, ?)");
    let mut job = Job::start(sql::execute(db.url(), statement), &unique("job"), FIRST, &[]).await.unwrap();
    job.epoch(1, [(12, Some("2024-01-01 00:00:00"), true, 8, Some(vec![3])), (13, None, false, 9, None)])
        .await;
    assert_eq!(db.number("SUM(price)", &format!("{table} WHERE small > 7")).await, 25);

    // What does not fit is an error and never cut off.
    if db.backend != Backend::Sqlite {
        let mut job =
            Job::start(sql::insert(db.url(), &table).columns(["kind", "small"]), &unique("job"), FIRST, &[])
                .await
                .unwrap();
        for (checkpoint, record) in [(1, ("much longer than ten", 1)), (1, ("short", 70_000))] {
            job.write([record]).await;
            let handle = job.pre_commit(checkpoint).await.unwrap();
            let why = lost(job.commit(checkpoint, &handle).await).to_lowercase();
            assert!(why.contains("too long") || why.contains("out of range"), "{why}");
            job = Job::start(job.sink, &unique("job"), FIRST, &[]).await.unwrap();
        }
    }
}

pub(crate) async fn a_table_may_be_named_with_its_schema(db: &Database) {
    let table = db.table(KEYED).await;
    let schema = match db.backend {
        Backend::Sqlite => "main",
        Backend::Postgres => "public",
        Backend::Mysql => "flow",
    };
    let sink = sql::upsert(db.url(), format!("{schema}.{table}")).key(["word"]);
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.write([Count { word: "a", n: 1 }]).await;
    assert_eq!(db.count(&table).await, 1);
}

pub(crate) async fn what_does_not_fit_is_refused_at_the_start(db: &Database) {
    async fn refused<S: Sink>(sink: S) -> String {
        recover(&sink, &unique("job"), FIRST, &[]).await.unwrap_err().to_string()
    }
    let why = refused(sql::insert(db.url(), "no_such_table")).await;
    assert!(why.contains("there is no table `no_such_table`") && why.contains(".prepare("), "{why}");
    let table = db.table(COUNTS).await;
    let why = refused(sql::insert(db.url(), &table).columns(["word", "m"])).await;
    assert!(why.contains("no column `m`; it has `word`, `n`"), "{why}");
    let why = refused(sql::upsert(db.url(), &table).key(["word"])).await;
    assert!(why.contains("cannot be upserted by (word)") && why.contains("CREATE UNIQUE INDEX"), "{why}");
    let why = refused(sql::insert(db.url(), &table).prepare("CREATE TABEL x")).await;
    assert!(why.contains("cannot run `CREATE TABEL x`"), "{why}");
    if db.backend == Backend::Mysql {
        let name = unique("t");
        db.run(&format!("CREATE TABLE {name} (n INT) ENGINE = MyISAM")).await;
        let why = refused(sql::insert(db.url(), &name)).await;
        assert!(why.contains("MyISAM") && why.contains("ENGINE = InnoDB"), "{why}");
    }
    if db.backend == Backend::Postgres {
        let why = refused(sql::execute(db.url(), "UPDATE nothing SET a = ?")).await;
        assert!(why.contains("cannot be prepared") && why.contains("nothing"), "{why}");
    }
}

pub(crate) async fn a_missing_database_is_told_without_its_password(db: &Database) {
    let urls = match db.backend {
        Backend::Sqlite => vec!["sqlite:/no/such/folder/x.db"],
        Backend::Postgres => {
            vec![
                "postgres://flow:hush-hush@127.0.0.1:9/flow",
                "postgres://flow:hush-hush@127.0.0.1:99999/flow",
            ]
        }
        Backend::Mysql => {
            vec!["mysql://flow:hush-hush@127.0.0.1:9/flow", "mysql://flow:hush-hush@127.0.0.1/flow?hush=hush"]
        }
    };
    for url in urls {
        let why = recover(&sql::insert(url, "t"), "job", FIRST, &[]).await.unwrap_err().to_string();
        assert!(why.contains("counts.sink") && !why.contains("hush-hush"), "{why}");
        println!("{why}");
    }
    if db.backend != Backend::Sqlite {
        let url = db.url.replace("flow-secret", "hush-hush");
        let why = recover(&sql::insert(url, "t"), "job", FIRST, &[]).await.unwrap_err().to_string();
        assert!(why.contains("cannot connect") && !why.contains("hush-hush"), "{why}");
        println!("{why}");
    }
}

#[derive(Debug, PartialEq, Deserialize)]
struct User {
    name: String,
    score: Option<i64>,
    share: f64,
}

pub(crate) async fn rows_are_looked_up(db: &Database) {
    use flow_runtime::async_io::Lookup;

    let table = db
        .table("id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(50) NOT NULL, score BIGINT, share DOUBLE PRECISION")
        .await;
    db.run(&format!("INSERT INTO {table} VALUES (1, 'Ada', 1000000000000, 0.5), (2, 'Zoë', NULL, -1)")).await;

    let users = sql::lookup::<User>(db.url(), format!("SELECT name, score, share FROM {table} WHERE id = ?"))
        .connections(2);
    let ada = User { name: "Ada".to_owned(), score: Some(1_000_000_000_000), share: 0.5 };
    assert_eq!(users.get(1u64).await.unwrap(), Some(ada));
    assert_eq!(users.get(2i32).await.unwrap().map(|user| user.score), Some(None));
    assert_eq!(users.get(3u64).await.unwrap(), None);

    // More at a time than there are connections.
    let many = (0..20u64).map(|n| users.get(n % 3));
    let found = futures_util::future::join_all(many).await;
    assert_eq!(found.iter().filter(|found| matches!(found, Ok(Some(_)))).count(), 13);

    let names =
        sql::lookup::<String>(db.url(), format!("SELECT name FROM {table} WHERE name = ? AND id > ?"));
    assert_eq!(names.get(("Zoë".to_owned(), 1)).await.unwrap().as_deref(), Some("Zoë"));
    let pairs = sql::lookup::<(u64, String)>(db.url(), format!("SELECT id, name FROM {table} WHERE id = ?"));
    assert_eq!(pairs.get(1u64).await.unwrap(), Some((1, "Ada".to_owned())));

    let numbers = sql::lookup::<u64>(db.url(), format!("SELECT name FROM {table} WHERE id = ?"));
    let error = numbers.get(1u64).await.unwrap_err().to_string();
    assert!(error.contains("SELECT name FROM") && error.contains("not what is wanted"), "{error}");
    let nowhere = sql::lookup::<User>(db.url(), "SELECT name FROM nowhere_to_be_found WHERE id = ?");
    assert!(nowhere.get(1u64).await.is_err());
}
