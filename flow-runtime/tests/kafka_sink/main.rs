//! The Kafka sink on a real broker, which is started by `tests/services/up` and found through
//! `eval "$(tests/services/env)"`, and on the mock broker as far as that goes.

mod at_least_once;
mod exactly_once;
mod faults;
#[path = "../sql_sinks/job.rs"]
#[allow(dead_code, reason = "shared with the SQL sinks, which need more of it")]
mod job;
mod proxy;
mod refusals;
mod topic;
