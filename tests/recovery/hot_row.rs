//! Kafka into one hot row: `examples/kafka_to_sql.rs`, two subtasks updating the same row.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    ROUNDS,
    database::Database,
    job::{Process, moment},
    servers::{address, alone, control},
    topic::{self, Producer},
};

fn job(topic: &str, database: &Database, directory: &Path, parallelism: usize) -> Process {
    job_with(topic, database, directory, parallelism, &[])
}

fn job_with(
    topic: &str,
    database: &Database,
    directory: &Path,
    parallelism: usize,
    more: &[&str],
) -> Process {
    let mut arguments = vec![
        "--brokers".to_owned(),
        address("FLOW_TEST_KAFKA"),
        "--topic".to_owned(),
        topic.to_owned(),
        "--database-url".to_owned(),
        database.url.clone(),
        "--parallelism".to_owned(),
        parallelism.to_string(),
        "--checkpoint-dir".to_owned(),
        directory.join("checkpoints").display().to_string(),
        "--checkpoint-interval".to_owned(),
        "50ms".to_owned(),
    ];
    arguments.extend(more.iter().map(|&argument| argument.to_owned()));
    Process::example("kafka_to_sql", &arguments, &directory.join("log"))
}

fn points(n: u64) -> String {
    (n % 1000 + 1).to_string()
}

fn total(records: u64) -> i64 {
    (0..records as i64).map(|n| n % 1000 + 1).sum()
}

/// Waits until the row has reached `expected`, and makes sure that it stays there until the job has stopped.
fn settle(job: &mut Process, database: &Database, expected: i64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let query = "SELECT total AS number FROM student WHERE id = 1";
    while database.number(query) != Some(expected) {
        job.still_runs();
        let now = database.number(query);
        assert!(now <= Some(expected), "the total is {now:?}, above {expected}:\n{}", job.log());
        assert!(Instant::now() < deadline, "the total is {now:?}, not {expected}:\n{}", job.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    job.terminate();
    job.finish(Duration::from_secs(20));
    assert_eq!(database.number(query), Some(expected), "after the last checkpoint");
}

/// Kills the job at random moments; `parallelism` may change from one round to the next.
fn killed_again_and_again(name: &str, database: &Database, directory: &Path, parallelism: &[usize]) {
    let topic = topic::create(name, 4);
    let producer = Producer::start(&topic, 20_000, points);
    for round in 0..ROUNDS {
        let mut job = job(&topic, database, directory, parallelism[round % parallelism.len()]);
        std::thread::sleep(moment(150, 700));
        job.still_runs();
        job.kill();
    }
    let expected = total(producer.stop());
    settle(&mut job(&topic, database, directory, parallelism[0]), database, expected);
}

#[test]
fn mariadb_at_parallelism_1() {
    let (_alone, directory) = (alone(), tempfile::tempdir().unwrap());
    killed_again_and_again("mariadb1", &Database::mariadb("hot_row_1"), directory.path(), &[1]);
}

#[test]
fn mariadb_at_parallelism_2() {
    let (_alone, directory) = (alone(), tempfile::tempdir().unwrap());
    killed_again_and_again("mariadb2", &Database::mariadb("hot_row_2"), directory.path(), &[2]);
}

#[test]
fn postgres_at_parallelism_1() {
    let (_alone, directory) = (alone(), tempfile::tempdir().unwrap());
    killed_again_and_again("postgres1", &Database::postgres("hot_row_1"), directory.path(), &[1]);
}

#[test]
fn postgres_at_parallelism_2() {
    let (_alone, directory) = (alone(), tempfile::tempdir().unwrap());
    killed_again_and_again("postgres2", &Database::postgres("hot_row_2"), directory.path(), &[2]);
}

#[test]
fn sqlite_at_parallelism_1() {
    let (_alone, directory) = (alone(), tempfile::tempdir().unwrap());
    killed_again_and_again("sqlite1", &Database::sqlite(directory.path()), directory.path(), &[1]);
}

#[test]
fn sqlite_at_parallelism_2() {
    let (_alone, directory) = (alone(), tempfile::tempdir().unwrap());
    killed_again_and_again("sqlite2", &Database::sqlite(directory.path()), directory.path(), &[2]);
}

#[test]
fn parallelism_changes_at_each_restore() {
    let (_alone, directory) = (alone(), tempfile::tempdir().unwrap());
    killed_again_and_again("rescaled", &Database::postgres("rescaled"), directory.path(), &[2, 1, 3]);
}

/// Servers go down in the middle, and come back; the job stays, or restarts by itself.
fn server_killed(server: &str, name: &str, database: &Database) {
    let directory = tempfile::tempdir().unwrap();
    let topic = topic::create(name, 4);
    let producer = Producer::start(&topic, 20_000, points);
    let mut job = job(&topic, database, directory.path(), 2);
    for _ in 0..2 {
        std::thread::sleep(moment(1500, 2500));
        control(server, "kill");
        std::thread::sleep(moment(200, 1500));
        job.still_runs();
        control(server, "start");
    }
    std::thread::sleep(Duration::from_secs(1));
    let expected = total(producer.stop());
    settle(&mut job, database, expected);
}

#[test]
fn mariadb_is_killed() {
    let _alone = alone();
    server_killed("mariadb", "mariadb-killed", &Database::mariadb("killed"));
}

#[test]
fn postgres_is_killed() {
    let _alone = alone();
    server_killed("postgres", "postgres-killed", &Database::postgres("killed"));
}

#[test]
fn the_broker_is_killed() {
    let _alone = alone();
    server_killed("kafka", "broker-killed", &Database::postgres("broker_killed"));
}

/// A record that is no number stops the job, with its place, and nothing of it reaches the database.
#[test]
fn a_poison_record_is_named() {
    let (_alone, directory) = (alone(), tempfile::tempdir().unwrap());
    let database = Database::postgres("poison");
    let topic = topic::create("poison", 4);
    let producer = Producer::start(&topic, 1000, |n| if n == 500 { "many".to_owned() } else { points(n) });
    std::thread::sleep(Duration::from_secs(1));
    producer.stop();
    let mut job = job_with(&topic, &database, directory.path(), 1, &["--restart", "exponential:attempts=2"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while job.ended().is_none() {
        assert!(Instant::now() < deadline, "the job did not give up:\n{}", job.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = job.log();
    let last = log.lines().last().unwrap_or_default();
    for part in ["error: operator `points.map`", "partition 0", "offset 125", "`many` is no number of points"]
    {
        assert!(last.contains(part), "`{part}` is not in the last line:\n{log}");
    }
}
