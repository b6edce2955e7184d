//! What becomes visible, and that it does once.

use std::{collections::HashMap, time::Duration};

use flow_runtime::{
    connectors::kafka::{self, Compression, KafkaSink, Record, Recovery, sink::Values},
    sink::Committed,
};
use rdkafka::{
    Message as _,
    config::FromClientConfig,
    producer::{BaseProducer, BaseRecord, Producer as _},
};

use crate::{
    job::{Carried, FIRST, Job, Start, from, lost, recover},
    topic::{TIMEOUT, Topic, brokers, config, headers, text, value},
};

fn sink(topic: &Topic) -> KafkaSink<Values> {
    kafka::to(&topic.name).brokers(brokers())
}

async fn start(topic: &Topic, start: Start, carried: &[Carried]) -> Job<KafkaSink<Values>> {
    Job::start(sink(topic), &topic.name, start, carried).await.unwrap()
}

async fn refused(sink: KafkaSink<Values>, topic: &Topic, start: Start, carried: &[Carried]) -> String {
    match Job::start(sink, &topic.name, start, carried).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("the job starts"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_there_after_the_commit_and_once() {
    let topic = Topic::new(2).await;
    let mut job = start(&topic, FIRST, &[]).await;
    job.write(["a", "b"]).await;
    let first = job.pre_commit(1).await.unwrap();
    job.write(["c"]).await;
    topic.holds([]);
    assert_eq!(job.commit(1, &first).await.unwrap(), Committed::Now);
    topic.holds(["a", "b"]);
    assert_eq!(job.commit(1, &first).await.unwrap(), Committed::Already);
    let second = job.pre_commit(2).await.unwrap();
    assert_eq!(job.commit(2, &second).await.unwrap(), Committed::Now);
    assert_eq!(job.commit(1, &first).await.unwrap(), Committed::Already);
    assert_eq!(job.commit(2, &second).await.unwrap(), Committed::Already);
    topic.holds(["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_has_key_headers_partition_and_timestamp() {
    let topic = Topic::new(3).await;
    let mut job = start(&topic, FIRST, &[]).await;
    let at = 1_700_000_000_000;
    let record = Record::new("v").key(7u8).header("h", "1").header("h", ()).partition(2).timestamp(at);
    job.epoch(1, [record]).await;
    job.epoch(2, [Record::tombstone().key("gone").partition(1)]).await;
    job.epoch(3, [Record::new("").key("").partition(0)]).await;
    let found = topic.committed(3);
    let key_and_value =
        |index: usize| (found[index].partition(), text(found[index].key()), value(&found[index]));
    assert_eq!(key_and_value(0), (0, String::new(), String::new()));
    assert_eq!(key_and_value(1), (1, "gone".into(), "(none)".into()));
    assert_eq!(key_and_value(2), (2, "7".into(), "v".into()));
    assert_eq!(found[2].timestamp().to_millis(), Some(at));
    assert_eq!(headers(&found[2]), [("h".into(), "1".into()), ("h".into(), "(none)".into())]);
}

/// As Java clients hash keys.
fn murmur2(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mix = |k: u32| {
        let k = k.wrapping_mul(M);
        (k ^ (k >> 24)).wrapping_mul(M)
    };
    let (words, rest) = key.as_chunks::<4>();
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    for word in words {
        hash = hash.wrapping_mul(M) ^ mix(u32::from_le_bytes(*word));
    }
    for (index, byte) in rest.iter().enumerate() {
        hash ^= u32::from(*byte) << (8 * index);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_keys_go_where_java_sends_them_and_keep_their_order() {
    let topic = Topic::new(5).await;
    let sink = sink(&topic).compression(Compression::Zstd);
    let mut job = Job::start(sink, &topic.name, FIRST, &[]).await.unwrap();
    for epoch in 1..=3u64 {
        job.epoch(epoch, (0..200u64).map(|n| (format!("key-{}", n % 20), epoch * 1000 + n))).await;
    }
    let mut last = HashMap::new();
    for message in topic.committed(600) {
        let key = text(message.key());
        assert_eq!(message.partition() as u32, (murmur2(key.as_bytes()) & 0x7fff_ffff) % 5, "{key}");
        let number: u64 = value(&message).parse().unwrap();
        assert!(last.insert(key, number).is_none_or(|before| before < number));
    }
    assert_eq!(last.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_without_records_opens_no_transaction() {
    let topic = Topic::new(1).await;
    let mut job = start(&topic, FIRST, &[]).await;
    assert!(job.pre_commit(1).await.is_none());
    job.epoch(2, ["a"]).await;
    assert!(job.pre_commit(3).await.is_none());
    assert!(job.pre_commit(4).await.is_none());
    job.epoch(5, ["b"]).await;
    let found = topic.committed(2);
    // Each transaction ends with a mark that has an offset, too.
    assert_eq!([found[0].offset(), found[1].offset()], [0, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_records_are_one_transaction() {
    let topic = Topic::new(2).await;
    let mut job = start(&topic, FIRST, &[]).await;
    // More than the client library's queue holds.
    job.epoch(1, (0..250_000u64).map(|n| (n, n))).await;
    let mut found: Vec<u64> =
        topic.committed(250_000).iter().map(|message| value(message).parse().unwrap()).collect();
    found.sort_unstable();
    assert!(found.into_iter().eq(0..250_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_is_written_by_another_process() {
    let topic = Topic::new(2).await;
    let mut job = start(&topic, FIRST, &[]).await;
    job.epoch(1, ["a"]).await;
    let mut carried = Vec::new();
    for (checkpoint, value) in [(2, "b"), (3, "c")] {
        job.write([value]).await;
        let handle = job.pre_commit(checkpoint).await.unwrap();
        carried.push(job.subtask(0).carried(checkpoint, &handle));
    }
    drop(job);
    for attempt in 2..4 {
        let job = start(&topic, from(3, attempt), &carried).await;
        topic.holds(["a", "b", "c"]);
        drop(job);
    }
    let mut job = start(&topic, from(3, 4), &carried).await;
    job.epoch(4, ["d"]).await;
    topic.holds(["a", "b", "c", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_left_open_is_rolled_back() {
    let topic = Topic::new(1).await;
    drop(start(&topic, FIRST, &[]).await);
    let mut config = config();
    config.set("transactional.id", format!("flow:{}:counts.sink:0", topic.name));
    let dead = BaseProducer::from_config(&config).unwrap();
    dead.init_transactions(TIMEOUT).unwrap();
    dead.begin_transaction().unwrap();
    dead.send(BaseRecord::<(), _>::to(&topic.name).payload("half")).unwrap();
    dead.flush(TIMEOUT).unwrap();
    let mut job = start(&topic, Start { attempt: 2, ..FIRST }, &[]).await;
    job.epoch(1, ["whole"]).await;
    topic.holds(["whole"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_attempt_is_fenced() {
    let topic = Topic::new(1).await;
    let mut zombie = start(&topic, FIRST, &[]).await;
    zombie.epoch(1, ["a"]).await;
    zombie.write(["b"]).await;
    let handle = zombie.pre_commit(2).await.unwrap();
    let mut job = start(&topic, from(1, 2), &[]).await;
    let why = lost(zombie.commit(2, &handle).await);
    assert!(why.contains("another copy of this job has started") && why.contains("subtask 0"), "{why}");
    job.epoch(2, ["B"]).await;
    let why = lost(zombie.commit(2, &handle).await);
    assert!(why.contains("another copy of this job has started"), "{why}");
    job.epoch(3, ["c"]).await;
    topic.holds(["B", "a", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_with_checkpoints_of_its_own_is_noticed() {
    let topic = Topic::new(1).await;
    let mut one = start(&topic, FIRST, &[]).await;
    one.write(["mine"]).await;
    let handle = one.pre_commit(1).await.unwrap();
    let carried = [one.subtask(0).carried(1, &handle)];
    let mut other = start(&topic, Start { attempt: 2, ..FIRST }, &[]).await;
    other.epoch(1, ["other"]).await;
    let why = refused(sink(&topic), &topic, from(1, 3), &carried).await;
    assert!(why.contains("with checkpoints of its own, has written its checkpoint 1"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marker_ahead_of_the_checkpoint_is_refused() {
    let topic = Topic::new(1).await;
    let mut job = start(&topic, FIRST, &[]).await;
    job.epoch(1, ["a"]).await;
    job.epoch(2, ["b"]).await;
    drop(job);
    let why = refused(sink(&topic), &topic, from(1, 2), &[]).await;
    assert!(why.contains("up to checkpoint 2") && why.contains("starts from checkpoint 1"), "{why}");
    let why = refused(sink(&topic), &topic, Start { attempt: 3, ..FIRST }, &[]).await;
    assert!(why.contains("starts from no checkpoint") && why.contains("Recovery::Repeat"), "{why}");
    topic.holds(["a", "b"]);

    let again = sink(&topic).recovery(Recovery::Repeat);
    let mut job = Job::start(again, &topic.name, from(1, 4), &[]).await.unwrap();
    job.epoch(2, ["b again"]).await;
    topic.holds(["a", "b", "b again"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_marker_is_an_error() {
    let topic = Topic::new(1).await;
    let mut job = start(&topic, FIRST, &[]).await;
    job.epoch(1, ["a"]).await;
    job.write(["b"]).await;
    let handle = job.pre_commit(2).await.unwrap();
    let carried = [job.subtask(0).carried(2, &handle)];
    assert_eq!(job.commit(2, &handle).await.unwrap(), Committed::Now);
    topic.holds(["a", "b"]);
    drop(job);

    topic.forget_marker(0).await;
    let why = refused(sink(&topic), &topic, from(2, 2), &carried).await;
    assert!(why.contains("checkpoint 2 holds 1 records that may or may not be written"), "{why}");
    assert!(why.contains("Recovery::Skip") && why.contains("offsets.retention.minutes"), "{why}");
    let skip = sink(&topic).recovery(Recovery::Skip);
    drop(Job::start(skip, &topic.name, from(2, 3), &carried).await.unwrap());
    topic.holds(["a", "b"]);

    topic.forget_marker(0).await;
    let repeat = sink(&topic).recovery(Recovery::Repeat);
    drop(Job::start(repeat.clone(), &topic.name, from(2, 4), &carried).await.unwrap());
    topic.holds(["a", "b", "b"]);
    // Once it is written again, it is known.
    drop(Job::start(repeat, &topic.name, from(2, 5), &carried).await.unwrap());
    topic.holds(["a", "b", "b"]);

    // With nothing pending a missing marker is made anew.
    topic.forget_marker(0).await;
    let mut job = start(&topic, from(2, 6), &[]).await;
    job.epoch(3, ["c"]).await;
    topic.holds(["a", "b", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_may_be_rescaled() {
    let topic = Topic::new(2).await;
    let mut wide = start(&topic, Start { parallelism: 3, ..FIRST }, &[]).await;
    let (mut carried, mut handles) = (Vec::new(), Vec::new());
    for subtask in 0..3 {
        let subtask = wide.subtask(subtask);
        subtask.write([format!("{}", subtask.cx.subtask)]).await.unwrap();
        let handle = subtask.pre_commit(1).await.unwrap();
        carried.push(subtask.carried(1, &handle));
        handles.push(handle);
    }
    let mut zombie = wide.into_subtasks().pop().unwrap();
    let mut narrow = start(&topic, from(1, 2), &carried).await;
    topic.holds(["0", "1", "2"]);
    let why = lost(zombie.commit(1, &handles[2]).await);
    assert!(why.contains("subtask 2: another copy"), "{why}");
    narrow.epoch(2, ["narrow"]).await;
    drop(narrow);

    // Handles are gone by then; a subtask that comes back finds its marker.
    let mut wide = start(&topic, Start { parallelism: 4, ..from(2, 3) }, &[]).await;
    for subtask in 0..4 {
        let subtask = wide.subtask(subtask);
        subtask.write([format!("again {}", subtask.cx.subtask)]).await.unwrap();
        let handle = subtask.pre_commit(3).await.unwrap();
        assert_eq!(subtask.commit(3, &handle).await.unwrap(), Committed::Now);
    }
    topic.holds(["0", "1", "2", "again 0", "again 1", "again 2", "again 3", "narrow"]);
    // Also one that is not there any more is seen to be ahead.
    drop(wide);
    let why = refused(sink(&topic), &topic, from(2, 4), &[]).await;
    assert!(why.contains("up to checkpoint 3"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_process_may_recover() {
    let topic = Topic::new(1).await;
    let mut job = start(&topic, FIRST, &[]).await;
    job.epoch(1, ["a"]).await;
    recover(&sink(&topic), &topic.name, FIRST, &[]).await.unwrap();
    job.epoch(2, ["b"]).await;
    topic.holds(["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_with_other_names_write_to_the_same_topic() {
    let topic = Topic::new(1).await;
    let mut one = start(&topic, FIRST, &[]).await;
    let mut other = Job::start(sink(&topic), &format!("{}:other", topic.name), FIRST, &[]).await.unwrap();
    let prefixed = sink(&topic).transactional_id_prefix("shop");
    let mut third = Job::start(prefixed, &topic.name, FIRST, &[]).await.unwrap();
    for job in [&mut one, &mut other, &mut third] {
        job.epoch(1, ["x"]).await;
    }
    topic.holds(["x", "x", "x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_copied_with_all_it_has() {
    use crate::job::context;
    use flow_runtime::{
        sink::{Sink as _, Write as _},
        source::{Batch as _, Fetched, Source as _, SourceContext, SourceReader as _},
    };
    let (from, to) = (Topic::new(1).await, Topic::new(1).await);
    let mut job = start(&from, FIRST, &[]).await;
    job.epoch(1, [Record::new("v").key("k").header("h", "x").timestamp(1234)]).await;
    from.committed(1);

    let source = kafka::messages(&from.name).brokers(brokers()).bounded();
    let splits = source.discover(false).await.unwrap();
    let mut reader = source.open(SourceContext::new("test", "source", 0, 1), splits).await.unwrap();
    let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    let sink = sink(&to);
    let mut copy = Job::start(sink.clone(), &to.name, FIRST, &[]).await.unwrap();
    let subtask = copy.subtask(0);
    subtask.sink_buffer = sink.buffer(&context(&to.name, FIRST, 0));
    tokio::time::timeout(Duration::from_secs(30), reader.fetch(&mut fetched)).await.unwrap().unwrap();
    for message in fetched.batch.records() {
        subtask.sink_buffer.write(message).unwrap();
    }
    subtask.write::<&str>([]).await.unwrap();
    let handle = subtask.pre_commit(1).await.unwrap();
    subtask.commit(1, &handle).await.unwrap();
    let found = &to.committed(1)[0];
    assert_eq!((text(found.key()), value(found)), ("k".into(), "v".into()));
    assert_eq!(found.timestamp().to_millis(), Some(1234));
    assert_eq!(headers(found), [("h".into(), "x".into())]);
}
