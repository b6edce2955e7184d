//! Real jobs are killed with -9 again and again, and the count at the other end has to be right. So it has to be when
//! the broker or the database is killed.
//!
//! Needs Kafka, MariaDB and PostgreSQL: `tests/run` starts them.

mod conformance;
mod database;
mod event_time;
mod files;
mod hot_row;
mod job;
mod kafka_to_kafka;
mod prepared;
mod servers;
mod topic;
mod word_counts;

/// Kills per scenario.
const ROUNDS: usize = 30;

/// As often, unless `FLOW_TEST_KILLS` says otherwise.
fn kills() -> usize {
    match std::env::var("FLOW_TEST_KILLS") {
        Ok(kills) => kills.parse().expect("FLOW_TEST_KILLS is a number"),
        Err(_) => ROUNDS,
    }
}
