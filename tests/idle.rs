//! A job that waits costs nothing. In a binary of its own, since it looks at the whole process.
#![cfg(target_os = "linux")]

mod common;

use std::{fs, thread, time::Duration};

use common::{Collected, Script, Scripted, config, start};
use flow::{Config, pipeline};

#[pipeline(guarantee = at_least_once)]
fn waiting(input: Scripted<u64>, out: Collected<(u64, u64)>) {
    let counts = source(input).key_by(|n| *n).count();
    counts.sink(out.at_once());
}

/// The time that the threads of this process have spent on a processor.
fn busy() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let times = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    times.map(|times| Duration::from_nanos(times.split(' ').next().unwrap().parse().unwrap())).sum()
}

#[test]
fn an_idle_job_uses_no_processor() {
    let out = Collected::new();
    let idle = Script::new().records([1]).never();
    let job = waiting(Scripted::new([idle.clone(), idle]), out.clone());
    let config = Config { checkpoint_interval: Some(Duration::from_secs(10)), ..config(&job, 2) };
    let running = start(job, config);
    out.wait_for(|records| records.len() == 2);
    let before = busy();
    // Nothing is waited for: this is the time in which nothing may happen.
    thread::sleep(Duration::from_secs(3));
    let spent = busy() - before;
    running.stop();
    assert!(spent < Duration::from_millis(10), "{spent:?} in 3 seconds");
}
