//! Kafka into Kafka: `examples/kafka_to_kafka.rs`, by staged output and a marker. A reader of committed records sees each
//! result once.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    job::{Process, moment},
    kills,
    servers::{address, alone},
    topic::{self, Producer},
};

fn order(n: u64) -> String {
    let price = if n % 10 == 9 { "null".to_owned() } else { (n % 7).to_string() };
    format!(r#"{{"id":{n},"customer":"c{}","pieces":{},"price":{price}}}"#, n % 50, n % 3)
}

fn killed_again_and_again(name: &str, parallelism: usize) {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (topic::create(name, 4), topic::create(&format!("{name}-out"), 3));
    let job = |bounded: bool| {
        let mut arguments = vec![
            "--brokers".to_owned(),
            address("FLOW_TEST_KAFKA"),
            "--input".to_owned(),
            input.clone(),
            "--output".to_owned(),
            output.clone(),
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
        Process::example("kafka_to_kafka", &arguments, &directory.path().join("log"))
    };
    let producer = Producer::start(&input, 3000, order);
    for _ in 0..kills() {
        let mut job = job(false);
        std::thread::sleep(moment(200, 900));
        job.still_runs();
        job.kill();
    }
    let records = producer.stop();
    job(true).finish(Duration::from_secs(120));

    let expected = (0..records).filter(|n| n % 10 != 9).count();
    let mut seen = vec![0u8; records as usize];
    for (key, value) in topic::committed(&output, 3, expected) {
        let total: serde_json::Value = serde_json::from_str(&value).expect("JSON");
        let n = total["order"].as_u64().expect("a number");
        assert_eq!(key, format!("c{}", n % 50));
        assert_eq!(total["cents"].as_u64(), Some(n % 3 * (n % 7)));
        seen[n as usize] += 1;
    }
    let wrong: Vec<_> =
        seen.iter().enumerate().filter(|(n, times)| **times != u8::from(n % 10 != 9)).take(10).collect();
    assert!(wrong.is_empty(), "of {records} orders these came so often: {wrong:?}");

    // Whether the kills met what they were meant for.
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    let resumed: BTreeSet<_> = log
        .lines()
        .filter_map(|line| line.split_once("resuming from checkpoint ")?.1.split(' ').next())
        .collect();
    let pending = log.matches("committed what the checkpoint carried").count();
    println!("{records} orders, resumed from {} checkpoints, {pending} with pending records", resumed.len());
    assert!(
        resumed.len() * 2 > kills(),
        "of {} kills only {} were after a new checkpoint",
        kills(),
        resumed.len()
    );
}

#[test]
fn at_parallelism_1() {
    let _alone = alone();
    killed_again_and_again("totals-1", 1);
}

#[test]
fn at_parallelism_2() {
    let _alone = alone();
    killed_again_and_again("totals-2", 2);
}
