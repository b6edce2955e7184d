//! The sink that writes at once.

use std::{collections::HashSet, time::Duration};

use flow_runtime::{
    checkpoint::CheckpointId,
    connectors::kafka::{
        self, KafkaSink,
        mock::MockBroker,
        sink::{Idempotent, Values},
    },
    sink::SinkWriter as _,
};

use crate::{
    job::{FIRST, Job},
    proxy::Proxy,
    topic::{Topic, brokers, read, value},
};

fn sink(topic: &str, brokers: String) -> KafkaSink<Values, Idempotent> {
    kafka::to(topic).brokers(brokers).at_least_once()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_there_at_the_barrier() {
    let topic = Topic::new(2).await;
    let mut job = Job::start(sink(&topic.name, brokers()), &topic.name, FIRST, &[]).await.unwrap();
    // More than the client library's queue holds.
    job.write((0..250_000u64).map(|n| (n % 100, n))).await;
    assert!(job.pre_commit(1).await.is_none());
    let found: HashSet<String> = read(&brokers(), &topic.name, 2).iter().map(value).collect();
    assert_eq!(found.len(), 250_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mock_broker_will_do() {
    let broker = MockBroker::start().unwrap();
    broker.create_topic("out", 3).unwrap();
    let mut job = Job::start(sink("out", broker.brokers()), "mock", FIRST, &[]).await.unwrap();
    job.write([("a", 1), ("b", 2)]).await;
    assert!(job.pre_commit(1).await.is_none());
    assert_eq!(read(&broker.brokers(), "out", 3).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_slows_down_and_repeats_nothing() {
    let (topic, proxy) = (Topic::new(1).await, Proxy::start().await);
    let sink = sink(&topic.name, proxy.brokers())
        .property("queue.buffering.max.messages", "1000")
        .property("reconnect.backoff.max.ms", "200");
    let mut job = Job::start(sink, &topic.name, FIRST, &[]).await.unwrap();
    job.write(["first"]).await;
    job.pre_commit(1).await;
    proxy.down();
    let outage = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        proxy.up();
    };
    let began = std::time::Instant::now();
    tokio::join!(job.write((0..5000u64).map(|n| n.to_string())), outage);
    assert!(began.elapsed() > Duration::from_secs(1), "the queue holds 1000 only");
    job.pre_commit(2).await;
    topic.committed(5001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_not_delivered_fails_the_job() {
    let (topic, proxy) = (Topic::new(1).await, Proxy::start().await);
    let sink = sink(&topic.name, proxy.brokers()).property("message.timeout.ms", "4000");
    let mut job = Job::start(sink, &topic.name, FIRST, &[]).await.unwrap();
    job.write(["first"]).await;
    job.pre_commit(1).await;
    proxy.down();
    job.write(["a", "b"]).await;
    let why = job.subtask(0).writer.pre_commit(CheckpointId(2)).await.unwrap_err().to_string();
    assert!(why.contains("sink `counts.sink`, subtask 0, after checkpoint 1: record 0"), "{why}");
}
