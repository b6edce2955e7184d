//! Real jobs are killed with -9 again and again, and the count at the other end has to be right. So it has to be when
//! the broker or the database is killed.
//!
//! Needs Kafka, MariaDB and PostgreSQL: `tests/run` starts them.

mod database;
mod files;
mod hot_row;
mod job;
mod prepared;
mod servers;
mod topic;
mod word_counts;

/// Kills per scenario.
const ROUNDS: usize = 30;
