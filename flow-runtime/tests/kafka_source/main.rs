//! The Kafka source, driven without a job: against the mock broker, and against the real one that `FLOW_TEST_KAFKA`
//! names.

mod broker;
mod mock;
mod reading;
