//! Kafka into two tables by prepared transactions: every record a row, and a total per student that each epoch updates.

use std::{path::Path, time::Duration};

use flow::{
    Job,
    kafka::{self, Start},
    pipeline, sql, worker,
};

use crate::{
    ROUNDS,
    database::Database,
    job::{Process, moment},
    servers::{address, alone},
    topic::{self, Producer},
};

/// Where the job reads and writes.
#[derive(Clone)]
struct Args {
    brokers: String,
    topic: String,
    database: String,
    /// Stop at the records that the topic has at the start.
    bounded: bool,
}

#[pipeline(guarantee = exactly_once)]
fn points_and_totals(args: &Args) {
    let points = source(
        kafka::lines(&args.topic)
            .brokers(&args.brokers)
            .group("points-and-totals")
            .start(Start::Earliest)
            .bounded_if(args.bounded),
    )
    .map(|line| {
        let (n, points) = line.split_once(' ').ok_or("no points")?;
        Ok((n.parse::<i64>()?, points.parse::<i64>()?))
    });
    points.sink(
        sql::insert(&args.database, "points")
            .columns(["n", "points"])
            .prepare("CREATE TABLE IF NOT EXISTS points (n BIGINT NOT NULL, points BIGINT NOT NULL)")
            .prepared_transactions(),
    );
    let totals = points.key_by(|(n, _)| *n % 10).sum(|(_, points)| *points);
    totals.sink(
        sql::upsert(&args.database, "totals")
            .key(["student"])
            .columns(["student", "total"])
            .prepare("CREATE TABLE IF NOT EXISTS totals (student BIGINT PRIMARY KEY, total BIGINT NOT NULL)")
            .prepared_transactions(),
    );
}

/// The job, when this test binary is started as one.
#[test]
fn as_a_job() {
    let Ok(topic) = std::env::var("FLOW_TEST_PREPARED_TOPIC") else { return };
    let directory = std::env::var("FLOW_TEST_JOB").unwrap();
    let args = Args {
        brokers: address("FLOW_TEST_KAFKA"),
        topic,
        database: std::env::var("FLOW_TEST_DATABASE").unwrap(),
        bounded: std::env::var("FLOW_TEST_BOUNDED").is_ok(),
    };
    let job: Job<points_and_totals> = points_and_totals(&args);
    let parallelism = std::env::var("FLOW_TEST_PARALLELISM").unwrap().parse().unwrap();
    let mut config = worker::Config::with_parallelism(job.plan(), parallelism);
    config.checkpoint_dir = Some(Path::new(&directory).join("checkpoints").display().to_string());
    config.checkpoint_interval = Some(Duration::from_millis(50));
    worker::run(&job, &config).unwrap();
}

fn record(n: u64) -> String {
    format!("{n} {}", n % 1000 + 1)
}

/// Kills the job at random moments up to `longest` after its start; `parallelism` may change from round to round.
fn killed_again_and_again(name: &str, database: &Database, parallelism: &[usize], longest: u64) {
    let directory = tempfile::tempdir().unwrap();
    let topic = topic::create(name, 4);
    let start = |parallelism: usize, bounded: bool| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command
            .args(["prepared::as_a_job", "--exact", "--nocapture"])
            .env("FLOW_TEST_PREPARED_TOPIC", &topic)
            .env("FLOW_TEST_JOB", directory.path())
            .env("FLOW_TEST_DATABASE", &database.url)
            .env("FLOW_TEST_PARALLELISM", parallelism.to_string());
        if bounded {
            command.env("FLOW_TEST_BOUNDED", "");
        }
        Process::start(command, &directory.path().join("log"))
    };
    let producer = Producer::start(&topic, 3000, record);
    let (mut written, mut rounds) = (0, 0);
    for round in 0..ROUNDS {
        let mut job = start(parallelism[round % parallelism.len()], false);
        std::thread::sleep(moment(150, longest));
        job.still_runs();
        job.kill();
        let now = database.number("SELECT COUNT(*) AS number FROM points").unwrap_or(0);
        rounds += usize::from(now > written);
        written = now;
    }
    let records = producer.stop() as i64;
    start(parallelism[0], true).finish(Duration::from_secs(120));

    let number = |query: &str| database.number(query).unwrap();
    let total: i64 = (0..records).map(|n| n % 1000 + 1).sum();
    println!("{name}: {ROUNDS} kills, {rounds} of them after rows; {records} records, {total} points");
    assert_eq!(number("SELECT COUNT(*) AS number FROM points"), records);
    assert_eq!(number("SELECT COUNT(DISTINCT n) AS number FROM points"), records);
    let sum = |table: &str, column: &str| {
        number(&format!("SELECT CAST(SUM({column}) AS {}) AS number FROM {table}", database.integer()))
    };
    assert_eq!(sum("points", "points"), total);
    assert_eq!(sum("totals", "total"), total);
    for student in 0..10 {
        let expected: i64 = (student..records).step_by(10).map(|n| n % 1000 + 1).sum();
        let found = number(&format!("SELECT total AS number FROM totals WHERE student = {student}"));
        assert_eq!(found, expected, "of student {student}");
    }
    assert!(rounds > 3, "the job was never killed in the middle");
}

#[test]
fn mariadb_at_parallelism_1() {
    let _alone = alone();
    killed_again_and_again("prepared-mariadb1", &Database::mariadb("prepared_1"), &[1], 2000);
}

#[test]
fn mariadb_at_parallelism_2() {
    let _alone = alone();
    killed_again_and_again("prepared-mariadb2", &Database::mariadb("prepared_2"), &[2], 2000);
}

#[test]
fn postgres_at_parallelism_1() {
    let _alone = alone();
    killed_again_and_again("prepared-postgres1", &Database::postgres("prepared_1"), &[1], 5000);
}

#[test]
fn postgres_at_parallelism_2() {
    let _alone = alone();
    killed_again_and_again("prepared-postgres2", &Database::postgres("prepared_2"), &[2], 5000);
}

#[test]
fn parallelism_changes_at_each_restore() {
    let _alone = alone();
    killed_again_and_again("prepared-rescaled", &Database::mariadb("prepared_rescaled"), &[2, 1, 3], 2500);
}
