//! The source against the mock broker.

use std::time::{Duration, Instant};

use flow_runtime::{
    connectors::kafka::{
        AtEnd, KafkaSource, KafkaSplit, Lines, Start, json, lines, messages, mock::MockBroker,
    },
    source::{Batch, Progress, Source, SourceReader, Split},
};
use tokio::time::timeout;

use crate::reading::{PATIENCE, Reading, read_all};

async fn lines_of(source: &KafkaSource<Lines, AtEnd>) -> Vec<String> {
    let mut lines = Vec::new();
    read_all(source, |line| lines.push(line.to_owned())).await.unwrap();
    lines.sort();
    lines
}

fn broker(topic: &str, partitions: i32) -> MockBroker {
    let broker = MockBroker::start().unwrap();
    broker.create_topic(topic, partitions).unwrap();
    broker
}

#[tokio::test]
async fn two_readers_share_the_partitions() {
    let broker = broker("numbers", 5);
    broker.fill_values("numbers", (0..10_000).map(|n| n.to_string())).unwrap();
    let source = lines("numbers").brokers(broker.brokers()).bounded();
    let splits = source.discover(false).await.unwrap();
    assert_eq!(splits.len(), 5);

    let mut seen = vec![0; 10_000];
    for subtask in 0..2 {
        let mine = splits.iter().skip(subtask).step_by(2).cloned().collect();
        let mut reading = Reading::open(&source, mine).await.unwrap();
        reading.rest(|line| seen[line.parse::<usize>().unwrap()] += 1).await.unwrap();
        assert!(reading.positions.values().all(|split| Some(split.next()) == split.end()));
    }
    assert!(seen.iter().all(|count| *count == 1));
}

#[tokio::test]
async fn a_million_records_stay_readable() {
    let broker = broker("many", 4);
    let values = (0..1_000_000u32).map(|n| format!("user-{} looks at page-{}", n % 9973, n));
    assert_eq!(broker.fill_values("many", values).unwrap(), 1_000_000);
    let source = lines("many").brokers(broker.brokers()).bounded();
    let (mut count, mut sum) = (0u64, 0u64);
    read_all(&source, |line| {
        count += 1;
        sum += line.rsplit('-').next().unwrap().parse::<u64>().unwrap();
    })
    .await
    .unwrap();
    assert_eq!((count, sum), (1_000_000, 999_999 * 500_000));
}

#[tokio::test]
async fn the_mock_tells_when_it_deletes() {
    let broker = broker("small", 1);
    // Nothing that compresses.
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state.rotate_left(17).to_le_bytes()
    };
    let values = (0..8_000).map(|_| (0..125).flat_map(|_| noise()).collect::<Vec<u8>>());
    let error = broker.fill_values("small", values).unwrap_err().to_string();
    assert!(error.contains("oldest records were deleted"), "{error}");
}

#[tokio::test]
async fn a_split_from_the_middle_gives_exactly_the_rest() {
    let broker = broker("numbers", 2);
    broker.fill_values("numbers", (0..50_000).map(|n| n.to_string())).unwrap();
    let source = lines("numbers").brokers(broker.brokers()).bounded();
    let splits = source.discover(false).await.unwrap();

    let mut seen = vec![0; 50_000];
    let mut first = Reading::open(&source, splits).await.unwrap();
    let mut steps = 0;
    while steps < 3 {
        first.step(|line| seen[line.parse::<usize>().unwrap()] += 1).await.unwrap();
        steps += 1;
    }
    let left: usize = seen.iter().filter(|count| **count == 0).count();
    assert!(left > 0, "there is a rest to read");
    // What comes later is behind the end that the splits carry.
    broker.fill_values("numbers", ["late", "later"]).unwrap();

    let saved = serde_json::to_string(&first.positions.values().collect::<Vec<_>>()).unwrap();
    drop(first);
    let restored: Vec<KafkaSplit> = serde_json::from_str(&saved).unwrap();
    let mut second = Reading::open(&source, restored).await.unwrap();
    second.rest(|line| seen[line.parse::<usize>().unwrap()] += 1).await.unwrap();
    assert!(seen.iter().all(|count| *count == 1));
}

#[tokio::test]
async fn what_is_empty_or_finished_ends_at_once() {
    let broker = broker("empty", 3);
    let source = lines("empty").brokers(broker.brokers()).bounded();
    assert!(lines_of(&source).await.is_empty());

    broker.fill_values("empty", ["a", "b"]).unwrap();
    let source = lines("empty").brokers(broker.brokers()).start(Start::Latest).bounded();
    assert!(lines_of(&source).await.is_empty());

    let none = Reading::open(&source, Vec::new()).await.unwrap().rest(|_| ()).await;
    none.unwrap();
}

#[tokio::test]
async fn several_topics_are_read_together() {
    let broker = broker("a", 2);
    broker.create_topic("b", 1).unwrap();
    broker.fill_values("a", ["a0", "a1", "a2"]).unwrap();
    broker.fill_values("b", ["b0"]).unwrap();
    let source = lines(["a", "b"]).brokers(broker.brokers()).bounded();
    let ids: Vec<_> = source.discover(false).await.unwrap().iter().map(Split::id).collect();
    assert_eq!(ids, ["a-0", "a-1", "b-0"]);
    assert_eq!(lines_of(&source).await, ["a0", "a1", "a2", "b0"]);
}

#[tokio::test]
async fn an_invalid_record_ends_the_batch_before_it() {
    let broker = broker("mixed", 1);
    broker.fill_values("mixed", [&b"good"[..], b"\xff\xfe", b"better"]).unwrap();
    let source = lines("mixed").brokers(broker.brokers()).bounded();
    let mut seen = Vec::new();
    let error = read_all(&source, |line| seen.push(line.to_owned())).await.unwrap_err().to_string();
    assert_eq!(seen, ["good"]);
    assert_eq!(
        error,
        "kafka topic `mixed`, partition 0, offset 1: the value is not UTF-8: invalid utf-8 sequence of 1 bytes from \
         index 0; `.skip_invalid()` would pass over such records"
    );

    let source = lines("mixed").brokers(broker.brokers()).skip_invalid().bounded();
    assert_eq!(lines_of(&source).await, ["better", "good"]);
}

#[tokio::test]
async fn skipped_records_keep_descriptions_right() {
    let broker = broker("mixed", 1);
    broker.fill_values("mixed", ["1", "x", "3", "y", "z", "6"]).unwrap();
    let source = json::<u32>("mixed").brokers(broker.brokers()).skip_invalid().bounded();
    let splits = source.discover(false).await.unwrap();
    let mut reading = Reading::open(&source, splits).await.unwrap();
    let mut seen = Vec::new();
    while reading.step(|number| seen.push(number)).await.unwrap() == Progress::More {}
    assert_eq!(seen, [1, 3, 6]);
    let place = |index| reading.fetched.batch.describe(index).unwrap_or_default();
    assert_eq!(place(0), "offset 0 of partition 0 of topic `mixed`");
    assert_eq!(place(1), "offset 2 of partition 0 of topic `mixed`");
    assert_eq!(place(2), "offset 5 of partition 0 of topic `mixed`");
    assert_eq!(reading.fetched.batch.describe(3), None);
}

#[tokio::test]
async fn an_iteration_goes_on_where_it_stopped() {
    let broker = broker("abc", 1);
    broker.fill_values("abc", ["a", "b", "c"]).unwrap();
    let source = lines("abc").brokers(broker.brokers()).bounded();
    let splits = source.discover(false).await.unwrap();
    let reader = &mut Reading::open(&source, splits).await.unwrap();
    timeout(PATIENCE, reader.reader.fetch(&mut reader.fetched)).await.unwrap().unwrap();
    assert_eq!(reader.fetched.batch.records().next(), Some("a"));
    assert_eq!(reader.fetched.batch.records().collect::<Vec<_>>(), ["b", "c"]);
}

#[tokio::test]
async fn messages_show_keys() {
    let broker = broker("pairs", 3);
    broker.fill("pairs", [("k", "v1"), ("k", "v2")]).unwrap();
    let source = messages("pairs").brokers(broker.brokers()).bounded();
    let mut seen = Vec::new();
    read_all(&source, |message| {
        assert!(message.timestamp.is_some_and(|at| at > 1_600_000_000_000));
        seen.push((
            message.offset,
            message.key.unwrap().to_vec(),
            message.text().unwrap().unwrap().to_owned(),
        ));
    })
    .await
    .unwrap();
    // One key, hence one partition.
    assert_eq!(seen, [(0, b"k".to_vec(), "v1".to_owned()), (1, b"k".to_vec(), "v2".to_owned())]);
}

#[tokio::test]
async fn an_unbounded_reader_waits_and_takes_more_splits() {
    let broker = broker("live", 2);
    let source = lines("live").brokers(broker.brokers());
    assert_eq!(source.discovery_interval(), Some(Duration::from_secs(10)));
    let splits = source.discover(false).await.unwrap();
    let mut reading = Reading::open(&source, splits[..1].to_vec()).await.unwrap();

    // A fetch that is given up loses nothing.
    for _ in 0..20 {
        let fetch = reading.reader.fetch(&mut reading.fetched);
        assert!(timeout(Duration::from_millis(5), fetch).await.is_err());
    }
    broker.fill_values("live", ["zero", "one"]).unwrap();
    let mut seen = Vec::new();
    while seen.is_empty() {
        reading.step(|line| seen.push(line.to_owned())).await.unwrap();
    }
    reading.reader.add_splits(splits[1..].to_vec()).await.unwrap();
    while seen.len() < 2 {
        reading.step(|line| seen.push(line.to_owned())).await.unwrap();
    }
    assert_eq!(seen, ["zero", "one"]);
}

#[tokio::test]
async fn an_outage_is_waited_out() {
    let broker = broker("live", 1);
    let source = lines("live").brokers(broker.brokers());
    broker.fill_values("live", ["before"]).unwrap();
    let splits = source.discover(false).await.unwrap();
    let mut reading = Reading::open(&source, splits).await.unwrap();
    let mut seen = Vec::new();
    while seen.is_empty() {
        reading.step(|line| seen.push(line.to_owned())).await.unwrap();
    }
    broker.take_down().unwrap();
    assert!(
        timeout(Duration::from_millis(500), reading.step(|_| ())).await.is_err(),
        "there is nothing to read, and no error"
    );
    broker.bring_up().unwrap();
    broker.fill_values("live", ["after"]).unwrap();
    while seen.len() < 2 {
        reading.step(|line| seen.push(line.to_owned())).await.unwrap();
    }
    assert_eq!(seen, ["before", "after"]);
}

#[tokio::test]
async fn discovery_goes_on_with_what_it_knows_in_an_outage() {
    let broker = broker("live", 2);
    let source = lines("live").brokers(broker.brokers()).connect_timeout(Duration::from_millis(300));
    let splits = source.discover(false).await.unwrap();
    broker.take_down().unwrap();
    assert_eq!(source.discover(false).await.unwrap(), splits);
}

#[tokio::test]
async fn starts_are_kept_once_found() {
    let broker = broker("live", 1);
    broker.fill_values("live", ["old"]).unwrap();
    let source = lines("live").brokers(broker.brokers()).start(Start::Latest);
    let first = source.discover(false).await.unwrap();
    assert_eq!(first[0].next(), 1);
    broker.fill_values("live", ["new"]).unwrap();
    assert_eq!(source.discover(false).await.unwrap(), first);

    // On a restore, what the checkpoint does not know is new.
    let restored = lines("live").brokers(broker.brokers()).start(Start::Latest);
    assert_eq!(restored.discover(true).await.unwrap()[0].next(), 0);
}

#[tokio::test]
async fn dropping_a_reader_is_prompt() {
    let broker = broker("many", 2);
    broker.fill_values("many", (0..200_000).map(|n| n.to_string())).unwrap();
    let source = lines("many").brokers(broker.brokers());
    let splits = source.discover(false).await.unwrap();
    let mut reading = Reading::open(&source, splits).await.unwrap();
    reading.step(|_| ()).await.unwrap();
    let begin = Instant::now();
    drop(reading);
    assert!(begin.elapsed() < Duration::from_millis(100), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn an_offset_that_is_not_there_is_an_error() {
    let broker = broker("few", 1);
    broker.fill_values("few", ["a", "b"]).unwrap();
    let source = lines("few").brokers(broker.brokers());
    let error = Reading::open(&source, vec![KafkaSplit::new("few", 0, 7)]).await.err().unwrap().to_string();
    assert!(
        error.starts_with(
            "kafka topic `few`, partition 0: offset 7 is wanted next, but the broker holds 0 to 1: the topic was"
        ),
        "{error}"
    );
    let error = Reading::open(&source, vec![KafkaSplit::new("few", 3, 0)]).await.err().unwrap().to_string();
    assert!(error.contains("partition 3: it is not there; the topic has 1 partitions"), "{error}");
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_an_error() {
    let broker = broker("clicks", 1);
    let error = lines("clicsk").brokers(broker.brokers()).discover(false).await.unwrap_err().to_string();
    assert_eq!(error, "kafka topic `clicsk` does not exist; a similar name exists: `clicks`");
}

#[tokio::test]
async fn brokers_that_do_not_answer_are_an_error() {
    // Port 9 discards, where it exists at all.
    let source = lines("x").brokers("127.0.0.1:9").connect_timeout(Duration::from_millis(500));
    let error = source.discover(false).await.unwrap_err().to_string();
    assert!(error.starts_with("no kafka broker of `127.0.0.1:9` answered within 500ms ("), "{error}");
    assert!(error.contains("Connection refused"), "{error}");
}

#[tokio::test]
async fn wrong_settings_are_errors() {
    let error = async |source: KafkaSource<Lines>| source.discover(false).await.unwrap_err().to_string();
    assert!(error(lines("x")).await.starts_with("no kafka broker given"));
    assert_eq!(error(lines([""; 0]).brokers("x:1")).await, "no kafka topic given");
    assert!(error(lines("x").brokers("x:1").start(Start::Committed)).await.contains("`.group(\"..\")`"));
    assert_eq!(
        error(lines("x").brokers("x:1").property("no.such", "1")).await,
        "kafka property `no.such`: No such configuration property: \"no.such\""
    );
    let number = error(lines("x").brokers("x:1").property("fetch.min.bytes", "many")).await;
    assert!(number.starts_with("kafka property `fetch.min.bytes`: "), "{number}");
    let secret = error(lines("x").brokers("x:1").property("sasl.oauthbearer.method", "hunter2")).await;
    assert_eq!(secret, "kafka property `sasl.oauthbearer.method`: its value is not valid");
    if cfg!(not(feature = "kafka-tls")) {
        for (key, value) in [("security.protocol", "ssl"), ("ssl.key.password", "hunter2")] {
            let tls = error(lines("x").brokers("x:1").property(key, value)).await;
            let expected =
                format!("kafka property `{key}`: it needs TLS: build with the feature `kafka-tls`");
            assert_eq!(tls, expected);
        }
    }
}
