//! Kafka into a table of counts: `examples/kafka_word_count.rs`, keyed state and upserts.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    ROUNDS,
    database::Database,
    job::{Process, moment},
    servers::{address, alone},
    topic::{self, Producer},
};

fn line(n: u64) -> String {
    format!("the word{} and Word{} of {n}", n % 100, n % 7)
}

fn killed_again_and_again(name: &str, database: &Database, parallelism: usize) {
    let directory = tempfile::tempdir().unwrap();
    let topic = topic::create(name, 4);
    let job = |bounded: bool| {
        let mut arguments = vec![
            "--brokers".to_owned(),
            address("FLOW_TEST_KAFKA"),
            "--topic".to_owned(),
            topic.clone(),
            "--database-url".to_owned(),
            database.url.clone(),
            "--parallelism".to_owned(),
            parallelism.to_string(),
            "--checkpoint-dir".to_owned(),
            directory.path().join("checkpoints").display().to_string(),
            "--checkpoint-interval".to_owned(),
            "50ms".to_owned(),
        ];
        if bounded {
            arguments.push("--bounded".to_owned());
        }
        Process::example("kafka_word_count", &arguments, &directory.path().join("log"))
    };
    let producer = Producer::start(&topic, 3000, line);
    for _ in 0..ROUNDS {
        let mut job = job(false);
        std::thread::sleep(moment(150, 700));
        job.still_runs();
        job.kill();
    }
    let records = producer.stop();
    job(true).finish(Duration::from_secs(120));

    let mut expected = BTreeMap::<String, i64>::new();
    for n in 0..records {
        for word in line(n).split_whitespace() {
            *expected.entry(word.to_owned()).or_default() += 1;
        }
    }
    let found: BTreeMap<_, _> = database.word_counts().into_iter().map(|row| (row.word, row.n)).collect();
    assert_eq!(found.len(), expected.len());
    for (word, n) in expected {
        assert_eq!(found.get(&word), Some(&n), "the count of `{word}`");
    }
}

#[test]
fn mariadb_at_parallelism_2() {
    let _alone = alone();
    killed_again_and_again("words-mariadb", &Database::mariadb("words"), 2);
}

#[test]
fn postgres_at_parallelism_1() {
    let _alone = alone();
    killed_again_and_again("words-postgres", &Database::postgres("words"), 1);
}
