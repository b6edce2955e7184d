//! When the network fails between any two steps of a commit.

use std::time::Duration;

use flow_runtime::{
    checkpoint::CheckpointId,
    connectors::kafka::{self, KafkaSink, sink::Values},
    sink::{CommitError, Committed, SinkCommitter as _},
};

use crate::{
    job::{FIRST, Job, from},
    proxy::{ADD_OFFSETS, ADD_PARTITIONS, END_TRANSACTION, PRODUCE, Proxy, TRANSACTION_OFFSETS},
    topic::Topic,
};

fn sink(topic: &Topic, proxy: &Proxy) -> KafkaSink<Values> {
    kafka::to(&topic.name)
        .brokers(proxy.brokers())
        .connect_timeout(Duration::from_secs(2))
        .property("reconnect.backoff.max.ms", "200")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_at_the_commit_is_outlasted() {
    let (topic, proxy) = (Topic::new(1).await, Proxy::start().await);
    let sink = sink(&topic, &proxy).transaction_timeout(Duration::from_secs(4));
    let mut job = Job::start(sink, &topic.name, FIRST, &[]).await.unwrap();
    job.epoch(1, ["a"]).await;
    job.write(["b"]).await;
    let handle = job.pre_commit(2).await.unwrap();
    proxy.down();
    for _ in 0..2 {
        match job.subtask(0).committer.commit(CheckpointId(2), &handle).await {
            Err(CommitError::Retry(why)) => {
                assert!(why.to_string().contains("subtask 0"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
    proxy.up();
    assert_eq!(job.commit(2, &handle).await.unwrap(), Committed::Now);
    job.epoch(3, ["c"]).await;
    topic.holds(["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_answer_is_lost_each_record_is_there_once() {
    let (topic, proxy) = (Topic::new(1).await, Proxy::start().await);
    let sink = sink(&topic, &proxy);
    let mut job = Job::start(sink, &topic.name, FIRST, &[]).await.unwrap();
    let mut expected = 0;
    for (number, request) in
        [PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, TRANSACTION_OFFSETS, END_TRANSACTION].into_iter().enumerate()
    {
        let checkpoint = number as u64 + 1;
        job.write([checkpoint]).await;
        let handle = job.pre_commit(checkpoint).await.unwrap();
        proxy.swallow(request);
        let bringing_up = async {
            while !proxy.is_down() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            proxy.up();
        };
        let (committed, ()) = tokio::join!(job.commit(checkpoint, &handle), bringing_up);
        committed.unwrap();
        assert_eq!(job.commit(checkpoint, &handle).await.unwrap(), Committed::Already);
        expected += 1;
        topic.committed(expected);
    }
    topic.holds(["1", "2", "3", "4", "5"]);
}

/// The process dies after the request, and another one goes on from the checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn wherever_a_process_dies_each_record_is_there_once() {
    let (topic, proxy) = (Topic::new(1).await, Proxy::start().await);
    let mut job = Job::start(sink(&topic, &proxy), &topic.name, FIRST, &[]).await.unwrap();
    let mut carried = Vec::new();
    for (number, request) in
        [PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, TRANSACTION_OFFSETS, END_TRANSACTION].into_iter().enumerate()
    {
        let checkpoint = number as u64 + 1;
        job.write([checkpoint]).await;
        let handle = job.pre_commit(checkpoint).await.unwrap();
        carried.push(job.subtask(0).carried(checkpoint, &handle));
        proxy.swallow(request);
        let mut dying = job.into_subtasks().remove(0);
        tokio::select! {
            _ = dying.commit(checkpoint, &handle) => {}
            () = async { while !proxy.is_down() { tokio::time::sleep(Duration::from_millis(5)).await; } } => {}
        }
        proxy.up();
        let attempt = checkpoint + 1;
        job =
            Job::start(sink(&topic, &proxy), &topic.name, from(checkpoint, attempt), &carried).await.unwrap();
        topic.committed(carried.len());
    }
    topic.holds(["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_took_too_long_is_tried_again() {
    let (topic, proxy) = (Topic::new(1).await, Proxy::start().await);
    let sink = sink(&topic, &proxy)
        .connect_timeout(Duration::from_secs(10))
        .transaction_timeout(Duration::from_secs(1))
        .property("socket.timeout.ms", "900");
    let mut job = Job::start(sink, &topic.name, FIRST, &[]).await.unwrap();
    job.write(["a"]).await;
    let handle = job.pre_commit(1).await.unwrap();
    proxy.stall(TRANSACTION_OFFSETS, Duration::from_secs(5));
    let outcome = job.subtask(0).committer.commit(CheckpointId(1), &handle).await;
    assert!(matches!(outcome, Err(CommitError::Retry(_))), "{outcome:?}");
    assert_eq!(job.commit(1, &handle).await.unwrap(), Committed::Now);
    topic.holds(["a"]);
}
