//! Prepared transactions, on the databases that have them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use flow_runtime::{
    checkpoint::CheckpointId,
    connectors::sql::{self, Backend, Execute, Prepared, Resolved, Transaction},
    sink::{Committed, Recovered, Settlement, Sink, SinkCommitter, SinkWriter, Standing},
};

use crate::{
    database::{Database, unique},
    job::{Carried, FIRST, Job, Start, context, from, lost, recover},
};

const ROWS: &str = "id INTEGER NOT NULL PRIMARY KEY, total BIGINT NOT NULL";

/// A table of four rows, and a sink that adds to them: records are (points, id).
async fn adder(db: &Database) -> (String, Execute<Prepared>) {
    let table = db.table(ROWS).await;
    db.run(&format!("INSERT INTO {table} VALUES (1, 0), (2, 0), (3, 0), (4, 0)")).await;
    let statement = format!("UPDATE {table} SET total = total + ? WHERE id = ?");
    (table, sql::execute(db.url(), statement).prepared_transactions())
}

async fn total(db: &Database, table: &str) -> i64 {
    db.number("SUM(total)", table).await
}

/// How many transactions of a job's sink are prepared.
async fn in_doubt(sink: &Execute<Prepared>, name: &str) -> usize {
    sink.in_doubt(name, "counts.sink").await.unwrap().len()
}

pub(crate) async fn rows_are_there_after_the_commit_and_once(db: &Database) {
    let table = db.table(ROWS).await;
    let sink = sql::insert(db.url(), &table).columns(["id", "total"]).prepared_transactions();
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.write((0..12_345).map(|id| (id, 1))).await;
    let handle = job.pre_commit(1).await.unwrap();
    assert_eq!(handle.rows(), 12_345);
    assert_eq!(handle.id().checkpoint(), 1);
    assert_eq!(db.count(&table).await, 0);
    assert_eq!(job.commit(1, &handle).await.unwrap(), Committed::Now);
    assert_eq!(total(db, &table).await, 12_345);
    assert_eq!(job.commit(1, &handle).await.unwrap(), Committed::Already);
    assert_eq!(total(db, &table).await, 12_345);
}

pub(crate) async fn epochs_without_rows_are_skipped(db: &Database) {
    let (table, sink) = adder(db).await;
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    assert!(job.pre_commit(1).await.is_none());
    job.epoch(2, [(1, 1)]).await;
    assert!(job.pre_commit(3).await.is_none());
    // Two checkpoints may be on their way at once.
    job.write([(1, 2)]).await;
    let fourth = job.pre_commit(4).await.unwrap();
    job.write([(1, 3)]).await;
    let fifth = job.pre_commit(5).await.unwrap();
    assert_eq!(job.commit(4, &fourth).await.unwrap(), Committed::Now);
    assert_eq!(job.commit(5, &fifth).await.unwrap(), Committed::Now);
    // Its own marker may be gone by then; that of the fifth tells.
    assert_eq!(job.commit(4, &fourth).await.unwrap(), Committed::Already);
    assert_eq!(total(db, &table).await, 3);
    for checkpoint in 6..40 {
        job.epoch(checkpoint, [(1, 4)]).await;
    }
    assert_eq!(job.commit(4, &fourth).await.unwrap(), Committed::Already);
    let markers = db.count(&format!("flow_transactions WHERE job = '{table}' AND subtask = 0")).await;
    assert!((1..20).contains(&markers), "{markers} markers");
}

/// The process dies after the barrier: what the checkpoint names is committed by the next one, and the rest is rolled
/// back.
pub(crate) async fn a_dead_process_is_cleaned_up_after(db: &Database) {
    let (table, sink) = adder(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    job.epoch(1, [(1, 1)]).await;
    job.write([(10, 2)]).await;
    let second = job.pre_commit(2).await.unwrap();
    // Not in the checkpoint any more: prepared, but its manifest was never written.
    job.write([(100, 3)]).await;
    job.pre_commit(3).await.unwrap();
    // Not even prepared.
    job.write([(1000, 4)]).await;
    let carried = [job.subtask(0).carried(2, &second)];
    drop(job);
    assert_eq!(in_doubt(&sink, &table).await, 2);

    // The next attempt dies right after it has recovered, and the one after it starts from the same checkpoint.
    for attempt in 2..4 {
        recover(&sink, &table, from(2, attempt), &carried).await.unwrap();
        assert_eq!(total(db, &table).await, 11);
        assert_eq!(in_doubt(&sink, &table).await, 0);
    }
    let mut job = Job::start(sink.clone(), &table, from(2, 4), &carried).await.unwrap();
    let began = Instant::now();
    job.epoch(3, [(5, 1), (5, 2), (5, 3), (5, 4)]).await;
    assert!(began.elapsed() < Duration::from_secs(5), "a lock was left");
    assert_eq!(total(db, &table).await, 31);
}

pub(crate) async fn a_lost_transaction_is_told(db: &Database) {
    let (table, sink) = adder(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    job.write([(1, 1)]).await;
    let handle = job.pre_commit(1).await.unwrap();
    let carried = [job.subtask(0).carried(1, &handle)];
    // Somebody interferes.
    let listed = sink.in_doubt(&table, "counts.sink").await.unwrap();
    assert_eq!(listed.iter().map(|found| &found.id).collect::<Vec<_>>(), [handle.id()]);
    assert_eq!(sink.abort_in_doubt(handle.id()).await.unwrap(), Resolved::Now);
    assert_eq!(sink.abort_in_doubt(handle.id()).await.unwrap(), Resolved::Gone);
    let why = lost(job.commit(1, &handle).await);
    assert!(why.contains("is lost with its 1 rows") && why.contains("no marker"), "{why}");
    drop(job);

    let why = recover(&sink, &table, from(1, 2), &carried).await.unwrap_err().to_string();
    assert!(why.contains("checkpoint 1, subtask 0") && why.contains("older checkpoint"), "{why}");
    db.run(why.split_once("run: ").unwrap().1).await;
    recover(&sink, &table, from(1, 3), &carried).await.unwrap();
    assert_eq!(total(db, &table).await, 0);
}

pub(crate) async fn a_transaction_in_doubt_may_be_committed_by_hand(db: &Database) {
    let (table, sink) = adder(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    job.write([(1, 1)]).await;
    let handle = job.pre_commit(1).await.unwrap();
    let carried = [job.subtask(0).carried(1, &handle)];
    drop(job);
    let id = handle.id().to_string().parse().unwrap();
    assert_eq!(sink.commit_in_doubt(&id).await.unwrap(), Resolved::Now);
    assert_eq!(total(db, &table).await, 1);
    recover(&sink, &table, from(1, 2), &carried).await.unwrap();
    assert_eq!(total(db, &table).await, 1);
}

/// What `txn` does, by the methods that every sink has.
pub(crate) async fn an_operator_settles_transactions(db: &Database) {
    let (table, sink) = adder(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    let mut handles = Vec::new();
    for checkpoint in 1..=3 {
        // Each its own row, for none of them is committed yet.
        job.write([(1 << checkpoint, checkpoint as i64)]).await;
        handles.push(job.pre_commit(checkpoint).await.unwrap());
    }
    let carried = |checkpoint: u64| Recovered {
        subtask: 0,
        checkpoint: CheckpointId(checkpoint),
        handle: handles[checkpoint as usize - 1].clone(),
    };
    let cx = context(&table, from(3, 2), 0);
    assert_eq!(sink.standing(&cx, &carried(1)).await.unwrap(), Standing::Pending);
    let held = Sink::in_doubt(&sink, &cx).await.unwrap();
    let ids: Vec<_> = held.iter().map(|held| held.id.clone()).collect();
    assert_eq!(ids.len(), 3);
    assert!(handles.iter().all(|handle| ids.contains(&handle.id().to_string())), "{ids:?}");
    drop(job);

    let mut committer = sink.open_committer(&cx, &[]).await.unwrap();
    let first = carried(1).handle;
    assert_eq!(committer.commit(CheckpointId(1), &first).await.unwrap(), Committed::Now);
    assert_eq!(sink.standing(&cx, &carried(1)).await.unwrap(), Standing::Committed);
    committer.abort(CheckpointId(2), &carried(2).handle).await.unwrap();
    assert_eq!(sink.standing(&cx, &carried(2)).await.unwrap(), Standing::Unknown);
    // The third by its name alone.
    let third = held.iter().find(|held| held.id == handles[2].id().to_string()).unwrap();
    sink.settle(&cx, third, Settlement::Commit).await.unwrap();
    assert!(Sink::in_doubt(&sink, &cx).await.unwrap().is_empty());
    assert_eq!(total(db, &table).await, (1 << 1) + (1 << 3));
}

pub(crate) async fn other_jobs_are_left_alone(db: &Database) {
    let (table, sink) = adder(db).await;
    let (other_table, other_sink) = adder(db).await;
    let mut other = Job::start(other_sink.clone(), &other_table, FIRST, &[]).await.unwrap();
    other.write([(1, 1)]).await;
    let handle = other.pre_commit(1).await.unwrap();
    // The same sink of the same job, in another attempt.
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    job.write([(1, 1)]).await;
    job.pre_commit(1).await.unwrap();
    drop(job);
    recover(&sink, &table, Start { attempt: 2, ..FIRST }, &[]).await.unwrap();
    assert_eq!(in_doubt(&sink, &table).await, 0);
    assert_eq!(in_doubt(&other_sink, &other_table).await, 1);
    assert_eq!(other.commit(1, &handle).await.unwrap(), Committed::Now);
}

/// What all of this began with: A is prepared and holds a row, the next epoch's B waits for it, and A must get through.
pub(crate) async fn the_next_epoch_does_not_keep_the_former_from_its_commit(db: &Database) {
    let (table, sink) = adder(db).await;
    let job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    let mut subtask = job.into_subtasks().remove(0);
    subtask.write([(1, 1)]).await.unwrap();
    let first = subtask.pre_commit(1).await.unwrap();
    let crate::job::Subtask { mut sink_buffer, mut writer, mut committer, .. } = subtask;
    flow_runtime::sink::Write::write(&mut sink_buffer, (10, 1)).unwrap();
    let writing = tokio::spawn(async move {
        writer.write(&mut sink_buffer).await.unwrap();
        writer
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!writing.is_finished(), "B did not wait for A");
    let began = Instant::now();
    assert_eq!(committer.commit(CheckpointId(1), &first).await.unwrap(), Committed::Now);
    let mut writer = writing.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let second = writer.pre_commit(CheckpointId(2)).await.unwrap().unwrap();
    assert_eq!(committer.commit(CheckpointId(2), &second).await.unwrap(), Committed::Now);
    assert_eq!(total(db, &table).await, 11);
}

/// A checkpoint may take longer than a lock is waited for: the epoch waits for its own predecessor as long as it takes.
pub(crate) async fn a_slow_checkpoint_is_waited_for(db: &Database) {
    let (table, sink) = adder(db).await;
    let job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    let mut subtask = job.into_subtasks().remove(0);
    subtask.write([(1, 1)]).await.unwrap();
    let first = subtask.pre_commit(1).await.unwrap();
    let crate::job::Subtask { mut sink_buffer, mut writer, mut committer, .. } = subtask;
    // Of two buffers the first has been written when the second begins to wait.
    for record in [(10, 2), (100, 1)] {
        flow_runtime::sink::Write::write(&mut sink_buffer, record).unwrap();
    }
    let writing = tokio::spawn(async move {
        writer.write(&mut sink_buffer).await.unwrap();
        writer
    });
    tokio::time::sleep(Duration::from_secs(34)).await;
    assert!(!writing.is_finished());
    assert_eq!(committer.commit(CheckpointId(1), &first).await.unwrap(), Committed::Now);
    let mut writer = writing.await.unwrap();
    let second = writer.pre_commit(CheckpointId(2)).await.unwrap().unwrap();
    assert_eq!(committer.commit(CheckpointId(2), &second).await.unwrap(), Committed::Now);
    assert_eq!(total(db, &table).await, 111);
}

/// The second deadlock, which no thread can cure: the writer gives up and says who may be to blame.
pub(crate) async fn subtasks_that_share_a_row_are_told(db: &Database) {
    let (table, sink) = adder(db).await;
    let start = Start { parallelism: 2, ..FIRST };
    let mut job = Job::start(sink.clone(), &table, start, &[]).await.unwrap();
    job.subtask(0).write([(1, 1)]).await.unwrap();
    job.subtask(0).pre_commit(1).await.unwrap();
    let began = Instant::now();
    let why = job.subtask(1).write([(1, 1)]).await.unwrap_err().to_string();
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    for part in
        ["counts.sink", "subtask 1", "transaction in doubt", "txn list", "partition the stream", "ledger"]
    {
        assert!(why.contains(part), "`{part}`: {why}");
    }
    drop(job);
    recover(&sink, &table, Start { attempt: 2, ..FIRST }, &[]).await.unwrap();
    assert_eq!(in_doubt(&sink, &table).await, 0);
}

pub(crate) async fn a_deadlock_makes_the_epoch_be_written_again(db: &Database) {
    let (table, sink) = adder(db).await;
    let start = Start { parallelism: 2, ..FIRST };
    let mut job = Job::start(sink, &table, start, &[]).await.unwrap();
    for (subtask, ids) in [(0, [1, 3]), (1, [2, 4])] {
        job.subtask(subtask).write(ids.map(|id| (1, id))).await.unwrap();
    }
    let tasks = job.into_subtasks().into_iter().map(|mut subtask| {
        tokio::spawn(async move {
            subtask.write([(10, 2 - subtask.cx.subtask)]).await.unwrap();
            // The one that got through lets the other go on.
            let handle = subtask.pre_commit(1).await.unwrap();
            assert_eq!(subtask.commit(1, &handle).await.unwrap(), Committed::Now);
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        tokio::time::timeout(Duration::from_secs(40), task).await.unwrap().unwrap();
    }
    assert_eq!(total(db, &table).await, 24);
}

/// Its connection is cut, in the middle of an epoch and right before the barrier.
pub(crate) async fn a_cut_connection_makes_the_epoch_be_written_again(db: &Database) {
    use diesel_async::RunQueryDsl;

    #[derive(diesel::QueryableByName)]
    struct Number {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }

    let (table, _) = adder(db).await;
    let connection = Arc::new(AtomicI64::new(0));
    let (seen, statement) =
        (Arc::clone(&connection), format!("UPDATE {table} SET total = total + ? WHERE id = 1"));
    let sink = sql::apply(db.url(), async move |tx: &mut Transaction, points: &[i64]| {
        for points in points {
            tx.sql(&statement, *points).await?;
        }
        let mut found: Vec<Number> = Vec::new();
        if let Some(postgres) = tx.postgres() {
            found = diesel::sql_query("SELECT CAST(pg_backend_pid() AS BIGINT) AS n").load(postgres).await?;
        } else if let Some(mysql) = tx.mysql() {
            found = diesel::sql_query("SELECT CAST(CONNECTION_ID() AS SIGNED) AS n").load(mysql).await?;
        }
        seen.store(found[0].n, Ordering::SeqCst);
        Ok(())
    })
    .prepared_transactions();
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    let cut = async || {
        let number = connection.swap(0, Ordering::SeqCst);
        assert_ne!(number, 0);
        match db.backend {
            Backend::Postgres => db.run(&format!("SELECT pg_terminate_backend({number})")).await,
            _ => db.run(&format!("KILL CONNECTION {number}")).await,
        }
    };
    job.write([1]).await;
    cut().await;
    job.write([10]).await;
    cut().await;
    let handle = job.pre_commit(1).await.unwrap();
    assert_eq!(handle.rows(), 2);
    assert_eq!(job.commit(1, &handle).await.unwrap(), Committed::Now);
    assert_eq!(total(db, &table).await, 11);
}

pub(crate) async fn an_earlier_attempt_is_fenced(db: &Database) {
    let (table, sink) = adder(db).await;
    let mut zombie = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    zombie.epoch(1, [(1, 1)]).await;
    zombie.write([(1, 1)]).await;
    let second = zombie.pre_commit(2).await.unwrap();
    let carried = [zombie.subtask(0).carried(2, &second)];
    zombie.write([(1, 2)]).await;

    let mut next = Job::start(sink.clone(), &table, from(2, 2), &carried).await.unwrap();
    // Both find it committed.
    assert_eq!(zombie.commit(2, &second).await.unwrap(), Committed::Already);
    let why = zombie.subtask(0).writer.pre_commit(CheckpointId(3)).await.unwrap_err().to_string();
    assert!(why.contains("another copy of this job"), "{why}");
    let cx = zombie.subtask(0).cx.clone();
    let why = sink.open(&cx).await.map(drop).unwrap_err().to_string();
    assert!(why.contains("another copy of this job"), "{why}");
    // Nor does it hold a lock.
    next.epoch(3, [(10, 2)]).await;
    assert_eq!(total(db, &table).await, 12);
    assert_eq!(in_doubt(&sink, &table).await, 0);
}

/// A process was killed while the server was still preparing: the transaction comes to light after the next attempt has
/// looked for such.
pub(crate) async fn an_orphan_that_comes_late_is_rolled_back(db: &Database) {
    let (table, sink) = adder(db).await;
    let mut zombie = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    zombie.write([(1, 1)]).await;
    let mut next = Job::start(sink.clone(), &table, Start { attempt: 2, ..FIRST }, &[]).await.unwrap();
    let owner = |attempt: u64| {
        format!(
            "UPDATE flow_transactions SET attempt = {attempt} WHERE job = '{table}' AND sink = 'counts.sink' AND subtask = -1 AND epoch = 0"
        )
    };
    db.run(&owner(1)).await;
    zombie.pre_commit(1).await.unwrap();
    db.run(&owner(2)).await;
    drop(zombie);
    assert_eq!(in_doubt(&sink, &table).await, 1);
    next.epoch(1, [(10, 1)]).await;
    assert_eq!(total(db, &table).await, 10);
    assert_eq!(in_doubt(&sink, &table).await, 0);

    // And of two attempts that wrote the same epoch only one gets through.
    let mut zombie = Job::start(sink.clone(), &table, from(1, 3), &[]).await.unwrap();
    db.run(&owner(2)).await;
    next.epoch(2, [(10, 2)]).await;
    db.run(&owner(3)).await;
    zombie.write([(1, 3)]).await;
    let why = zombie.subtask(0).writer.pre_commit(CheckpointId(2)).await.unwrap_err().to_string();
    assert!(why.contains("committed already"), "{why}");
}

pub(crate) async fn markers_ahead_are_refused(db: &Database) {
    let (table, sink) = adder(db).await;
    let mut job = Job::start(sink.clone(), &table, FIRST, &[]).await.unwrap();
    for checkpoint in 1..=3 {
        job.epoch(checkpoint, [(1, 1)]).await;
    }
    let why = recover(&sink, &table, from(2, 2), &[]).await.unwrap_err().to_string();
    assert!(why.contains("up to checkpoint 3") && why.contains("another name"), "{why}");
    // The refused attempt has not taken over.
    job.epoch(4, [(1, 1)]).await;
    drop(job);
    let why = recover(&sink, &table, from(2, 3), &[]).await.unwrap_err().to_string();
    db.run(why.split_once("run: ").unwrap().1).await;
    let mut job = Job::start(sink.clone(), &table, from(2, 4), &[]).await.unwrap();
    job.epoch(3, [(1, 1)]).await;
    assert_eq!(total(db, &table).await, 5);
    drop(job);
    let why = recover(&sink, &table, Start { attempt: 5, ..FIRST }, &[]).await.unwrap_err().to_string();
    assert!(why.contains("from no checkpoint"), "{why}");
    db.run(why.split_once("run: ").unwrap().1).await;
    recover(&sink, &table, Start { attempt: 6, ..FIRST }, &[]).await.unwrap();
}

pub(crate) async fn a_job_may_be_rescaled(db: &Database) {
    let (table, sink) = adder(db).await;
    let start = Start { parallelism: 3, ..FIRST };
    let mut job = Job::start(sink.clone(), &table, start, &[]).await.unwrap();
    let mut carried: Vec<Carried> = Vec::new();
    for subtask in 0..3 {
        let subtask = job.subtask(subtask);
        let id = subtask.cx.subtask + 1;
        subtask.write([(1, id)]).await.unwrap();
        let first = subtask.pre_commit(1).await.unwrap();
        subtask.commit(1, &first).await.unwrap();
        subtask.write([(1, id)]).await.unwrap();
        let second = subtask.pre_commit(2).await.unwrap();
        carried.push(subtask.carried(2, &second));
    }
    let mut one = Job::start(sink.clone(), &table, from(2, 2), &carried).await.unwrap();
    assert_eq!(total(db, &table).await, 6);
    one.epoch(3, [(1, 1)]).await;
    let four = Start { attempt: 3, parallelism: 4, restored: Some(3) };
    let mut job = Job::start(sink, &table, four, &[]).await.unwrap();
    for subtask in 0..4 {
        let subtask = job.subtask(subtask);
        subtask.write([(1, subtask.cx.subtask + 1)]).await.unwrap();
        let handle = subtask.pre_commit(4).await.unwrap();
        assert_eq!(subtask.commit(4, &handle).await.unwrap(), Committed::Now);
    }
    assert_eq!(total(db, &table).await, 11);
}

pub(crate) async fn an_upsert_keeps_the_last_row(db: &Database) {
    let table = db.table(ROWS).await;
    let sink = sql::upsert(db.url(), &table).key(["id"]).columns(["id", "total"]).prepared_transactions();
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    for round in 1..4 {
        job.write((0..1500).map(|id| (id, round))).await;
    }
    let handle = job.pre_commit(1).await.unwrap();
    assert_eq!(db.count(&table).await, 0);
    job.commit(1, &handle).await.unwrap();
    assert_eq!(total(db, &table).await, 4500);
}

pub(crate) async fn a_row_that_is_refused_is_named(db: &Database) {
    let table = db.table(ROWS).await;
    let sink = sql::insert(db.url(), &table).columns(["id", "total"]).prepared_transactions();
    let mut job = Job::start(sink, &table, FIRST, &[]).await.unwrap();
    job.epoch(1, [(7, 1)]).await;
    // The first buffers of the epoch are in the transaction already; then one repeats a row of them, far inside.
    job.write((100..5000).map(|id| (id, 1))).await;
    let bad = (5000..6200).chain([4321]).map(|id| (id, 1));
    let why = job.subtask(0).write(bad).await.unwrap_err().to_string();
    assert!(why.contains("row 6101 of 6101") && why.contains(&table), "{why}");
    assert_eq!(db.count(&table).await, 1);
    drop(job);
    // In order of the key it comes before those that are there already, which are more than a statement takes.
    let sink = sql::upsert(db.url(), &table).key(["id"]).columns(["id", "total"]).prepared_transactions();
    let mut job = Job::start(sink, &unique("job"), FIRST, &[]).await.unwrap();
    job.write((100..15_000).map(|id| (id, 1))).await;
    let bad = (20_000..20_500).chain([-1i64 << 40]).map(|id| (id, 1));
    let why = job.subtask(0).write(bad).await.unwrap_err().to_string();
    assert!(why.contains("row 15401 of 15401") && why.contains(&table), "{why}");
    assert_eq!(db.count(&table).await, 1);
}

pub(crate) async fn a_closure_cannot_end_the_transaction(db: &Database) {
    let table = db.table("id INTEGER NOT NULL PRIMARY KEY").await;
    let insert = format!("INSERT INTO {table} VALUES (?)");
    for (number, end) in ["ROLLBACK", "COMMIT"].into_iter().enumerate() {
        let insert = insert.clone();
        let sink = sql::apply(db.url(), async move |tx: &mut Transaction, rows: &[i64]| {
            tx.sql(&insert, rows[0]).await?;
            let _ = tx.execute(flow_runtime::connectors::sql::diesel::sql_query(end)).await;
            let _ = tx.execute(flow_runtime::connectors::sql::diesel::sql_query("BEGIN")).await;
            Ok(())
        })
        .prepared_transactions();
        let name = unique("job");
        let mut job = Job::start(sink, &name, FIRST, &[]).await.unwrap();
        job.write([number as i64]).await;
        let prepared = job.subtask(0).writer.pre_commit(CheckpointId(1)).await;
        // XA refuses both statements, so nothing has happened to the transaction.
        if db.backend == Backend::Mysql {
            let handle = prepared.unwrap().unwrap();
            assert_eq!(job.commit(1, &handle).await.unwrap(), Committed::Now);
        } else {
            let why = prepared.unwrap_err().to_string();
            assert!(why.contains("has ended the transaction"), "{why}");
        }
    }
    // An error that is swallowed.
    let sink = sql::apply(db.url(), async move |tx: &mut Transaction, rows: &[i64]| {
        for row in rows {
            let _ = tx.sql(&insert, *row).await;
        }
        Ok(())
    })
    .prepared_transactions();
    let mut job = Job::start(sink, &unique("job"), FIRST, &[]).await.unwrap();
    job.write([5, 5, 6]).await;
    let prepared = job.subtask(0).writer.pre_commit(CheckpointId(1)).await;
    match db.backend {
        Backend::Mysql => {
            let handle = prepared.unwrap().unwrap();
            assert_eq!(job.sink.abort_in_doubt(handle.id()).await.unwrap(), Resolved::Now);
        }
        _ => {
            let why = prepared.unwrap_err().to_string();
            assert!(why.contains("aborted") || why.contains("has ended"), "{why}");
        }
    }
}

pub(crate) async fn a_closure_may_nest_transactions(db: &Database) {
    use diesel_async::{AsyncConnection, SimpleAsyncConnection};

    let table = db.table("id INTEGER NOT NULL PRIMARY KEY").await;
    let insert = format!("INSERT INTO {table} VALUES (?)");
    let delete = format!("DELETE FROM {table}");
    let sink = sql::apply(db.url(), async move |tx: &mut Transaction, rows: &[i64]| {
        for row in rows {
            tx.sql(&insert, *row).await?;
        }
        // Rolled back to where it began.
        let regret = Err::<(), _>(diesel::result::Error::RollbackTransaction);
        let delete = delete.clone();
        if let Some(connection) = tx.postgres() {
            let _ = connection
                .transaction(async |connection| {
                    connection.batch_execute(&delete).await?;
                    regret
                })
                .await;
        } else if let Some(connection) = tx.mysql() {
            let _ = connection
                .transaction(async |connection| {
                    connection.batch_execute(&delete).await?;
                    regret
                })
                .await;
        }
        Ok(())
    })
    .prepared_transactions();
    let mut job = Job::start(sink, &unique("job"), FIRST, &[]).await.unwrap();
    job.epoch(1, [1, 2, 3]).await;
    assert_eq!(db.count(&table).await, 3);
}

#[tokio::test]
async fn sqlite_is_refused() {
    let db = Database::sqlite();
    let (table, sink) = adder(&db).await;
    let why = recover(&sink, &table, FIRST, &[]).await.unwrap_err().to_string();
    assert!(why.contains("SQLite has no prepared transactions") && why.contains("ledger"), "{why}");
}

/// What the server must allow is told before the first row. The server is one of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_postgres_does_not_allow_is_told_at_the_start() {
    let server = OwnPostgres::start(0);
    let (table, sink) = adder(&server.database).await;
    let why = recover(&sink, &table, FIRST, &[]).await.unwrap_err().to_string();
    assert!(
        why.contains("`max_prepared_transactions` is 0")
            && why.contains("ALTER SYSTEM SET max_prepared_transactions = 64")
            && why.contains("restart the server"),
        "{why}"
    );
    server.run_as_admin("ALTER SYSTEM SET max_prepared_transactions = 2");
    server.restart();
    let start = Start { parallelism: 3, ..FIRST };
    let why = recover(&sink, &table, start, &[]).await.unwrap_err().to_string();
    assert!(why.contains("allows 2 prepared transactions") && why.contains("3 subtasks"), "{why}");

    // Others hold all slots.
    let mut others = Job::start(sink.clone(), &table, Start { parallelism: 2, ..FIRST }, &[]).await.unwrap();
    for subtask in 0..2 {
        others.subtask(subtask).write([(1, subtask + 1)]).await.unwrap();
        others.subtask(subtask).pre_commit(1).await.unwrap();
    }
    let why = recover(&sink, &unique("job"), FIRST, &[]).await.unwrap_err().to_string();
    assert!(
        why.contains("maximum number of prepared transactions") && why.contains("pg_prepared_xacts"),
        "{why}"
    );
    drop(others);
    recover(&sink, &table, Start { attempt: 2, ..FIRST }, &[]).await.unwrap();

    // A user who may not write the markers.
    server.run_as_admin("ALTER TABLE flow_transactions OWNER TO postgres; GRANT SELECT, UPDATE, DELETE ON flow_transactions TO flow");
    let why = recover(&sink, &table, Start { attempt: 3, ..FIRST }, &[]).await.unwrap_err().to_string();
    assert!(why.contains("permission denied") && why.contains("flow_transactions"), "{why}");
    server.run_as_admin("GRANT INSERT ON flow_transactions TO flow");
    recover(&sink, &table, Start { attempt: 4, ..FIRST }, &[]).await.unwrap();
}

/// A PostgreSQL of this test alone.
struct OwnPostgres {
    database: Database,
    state: tempfile::TempDir,
}

impl OwnPostgres {
    fn start(prepared_transactions: u32) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let state = tempfile::tempdir().unwrap();
        let (user, host) = ("flow:flow-secret", "127.0.0.1");
        let database = Database::postgres_at(&format!("postgres://{user}@{host}:{port}/flow"));
        let server = OwnPostgres { database, state };
        server.control("start", Some((port, prepared_transactions)));
        server
    }

    /// With what `ALTER SYSTEM` has set.
    fn restart(&self) {
        self.control("stop", None);
        self.control("start", None);
    }

    fn control(&self, verb: &str, fresh: Option<(u16, u32)>) {
        let services =
            std::env::var("FLOW_TEST_SERVICES").expect("FLOW_TEST_SERVICES: eval \"$(tests/services/env)\"");
        let mut control = std::process::Command::new(std::path::Path::new(&services).join("ctl"));
        control.args(["postgres", verb]).env("FLOW_TEST_SERVICES_STATE", self.state.path());
        control.env("FLOW_TEST_POSTGRES_PREPARED", "");
        if let Some((port, prepared)) = fresh {
            control.env("FLOW_TEST_POSTGRES_PORT", port.to_string());
            control.env("FLOW_TEST_POSTGRES_PREPARED", prepared.to_string());
        }
        assert!(control.status().unwrap().success(), "postgres {verb}");
    }

    fn run_as_admin(&self, statements: &str) {
        let url = self.database.url.replace("flow:flow-secret", "postgres:flow-secret");
        for statement in statements.split("; ") {
            let status = std::process::Command::new("psql").args([&url, "-qc", statement]).status().unwrap();
            assert!(status.success(), "{statement}");
        }
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        self.control("wipe", None);
    }
}
