//! Windows, timers and a join: the job of the chaos runner, killed and gone on with at other parallelisms.

use std::{
    collections::BTreeMap,
    process::Command,
    time::{Duration, Instant},
};

use flow::{Job, worker};

use crate::{
    files::{entries, lines},
    job::{Process, moment},
};

#[path = "../faults/event_time.rs"]
mod pipeline;
#[path = "../faults/results.rs"]
mod results;

use pipeline::event_time;
use results::expected;

/// What the pipeline goes by.
#[derive(Clone)]
pub(crate) struct Args {
    records: u64,
    rate: u64,
    target: String,
}

const RECORDS: u64 = 90_000;
const KILLS: usize = 12;

/// The job, when this test binary is started as one.
#[test]
fn as_a_job() {
    let Ok(directory) = std::env::var("FLOW_TEST_EVENT_TIME_JOB") else { return };
    let args = Args { records: RECORDS, rate: 15_000, target: format!("{directory}/out") };
    let job: Job<event_time> = event_time(&args);
    let parallelism = std::env::var("FLOW_TEST_PARALLELISM").unwrap().parse().unwrap();
    let mut config = worker::Config::with_parallelism(job.plan(), parallelism);
    config.checkpoint_dir = Some(format!("{directory}/checkpoints"));
    config.checkpoint_interval = Some(Duration::from_millis(30));
    let summary = worker::run(&job, &config).unwrap();
    assert_eq!(summary.late.values().sum::<u64>(), 0);
}

#[test]
fn windows_timers_and_joins_are_killed_and_nothing_is_lost_or_comes_twice() {
    let directory = tempfile::tempdir().unwrap();
    let start = |parallelism: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["event_time::as_a_job", "--exact", "--nocapture"])
            .env("FLOW_TEST_EVENT_TIME_JOB", directory.path())
            .env("FLOW_TEST_PARALLELISM", parallelism.to_string());
        Process::start(command, &directory.path().join("log"))
    };
    let checkpoints = directory.path().join("checkpoints");
    for round in 0..KILLS {
        let before = entries(&checkpoints);
        let mut job = start([1, 2, 2, 3][round % 4]);
        let deadline = Instant::now() + Duration::from_secs(60);
        // Some are killed before they have come any further.
        while round % 3 > 0 && entries(&checkpoints).is_subset(&before) {
            job.still_runs();
            assert!(Instant::now() < deadline, "no checkpoint in a minute:\n{}", job.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(moment(0, 200));
        job.still_runs();
        job.kill();
    }
    start(2).finish(Duration::from_secs(120));

    let mut times = BTreeMap::<i64, i64>::new();
    expected(RECORDS).into_iter().for_each(|result| *times.entry(result).or_default() -= 1);
    for line in lines(&directory.path().join("out")) {
        *times.entry(line.parse().expect("a whole line")).or_default() += 1;
    }
    let wrong: Vec<_> = times.iter().filter(|(_, times)| **times != 0).take(10).collect();
    assert!(wrong.is_empty(), "results, and how often they came too often: {wrong:?}");
}
