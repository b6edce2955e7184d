//! What is refused, when, and in which words.

use std::time::Duration;

use flow_runtime::{
    connectors::kafka::{self, KafkaSink, Record, mock::MockBroker, sink::Values},
    sink::Sink,
};

use crate::{
    job::{FIRST, Job},
    topic::{Topic, brokers},
};

async fn refused<S: Sink>(sink: S) -> String {
    match Job::start(sink, "refused", FIRST, &[]).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("the job starts"),
    }
}

fn sink(topic: &str) -> KafkaSink<Values> {
    kafka::to(topic).brokers(brokers())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_timeout_beyond_the_brokers() {
    let topic = Topic::new(1).await;
    let why = refused(sink(&topic.name).transaction_timeout(Duration::from_secs(3600))).await;
    assert!(why.starts_with("sink `counts.sink`: the transaction timeout of 3600s is longer"), "{why}");
    assert!(why.ends_with("raise their `transaction.max.timeout.ms`, which is 900s"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there() {
    let why = refused(sink("flow-no-such-topic")).await;
    assert!(why.contains("kafka topic `flow-no-such-topic` does not exist"), "{why}");
    let why =
        refused(kafka::to("x").brokers("127.0.0.1:1").connect_timeout(Duration::from_millis(300))).await;
    assert!(why.contains("no kafka broker of `127.0.0.1:1` answered"), "{why}");
    assert!(refused(kafka::to("x")).await.contains(".brokers("));
    let why = refused(sink("x").property("acks", "1")).await;
    assert!(why.contains("kafka property `acks`"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_on_the_mock_broker() {
    let broker = MockBroker::start().unwrap();
    broker.create_topic("out", 1).unwrap();
    let why = refused(kafka::to("out").brokers(broker.brokers())).await;
    assert!(why.contains("the mock broker takes transactions and ignores them"), "{why}");
}

/// In the checkpoint they would be refused again and again.
#[tokio::test(flavor = "multi_thread")]
async fn records_that_no_broker_would_take() {
    let topic = Topic::with(2, &[("max.message.bytes", "100000")]).await;
    let mut job = Job::start(sink(&topic.name), &topic.name, FIRST, &[]).await.unwrap();
    job.epoch(1, [("k", vec![7; 99_000])]).await;
    let subtask = job.subtask(0);
    let why =
        subtask.write([("small", vec![0; 10]), ("big", vec![0; 100_000])]).await.unwrap_err().to_string();
    assert!(why.contains("with key `big`") && why.contains("max.message.bytes"), "{why}");
    subtask.sink_buffer = sink(&topic.name).buffer(&subtask.cx);
    let why = subtask.write([Record::new("x").partition(2)]).await.unwrap_err().to_string();
    assert!(why.contains("wants partition 2, but the topic has 2, from 0"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_fit_the_topic_but_not_the_client_library() {
    let topic = Topic::with(1, &[("max.message.bytes", "5000000")]).await;
    let mut job = Job::start(sink(&topic.name), &topic.name, FIRST, &[]).await.unwrap();
    job.epoch(1, (0..3).map(|_| vec![7; 4_000_000])).await;
    topic.committed(3);
}
