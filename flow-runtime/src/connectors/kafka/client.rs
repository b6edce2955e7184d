//! Questions to the cluster. They block, and run on a thread of their own.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rdkafka::{
    ClientContext, Offset, TopicPartitionList,
    config::{FromClientConfigAndContext, RDKafkaLogLevel},
    consumer::{BaseConsumer, Consumer as _, ConsumerContext, ConsumerGroupMetadata},
    error::{KafkaError as ClientError, KafkaResult, RDKafkaErrorCode as Code},
    message::BorrowedMessage,
};

use super::{
    KafkaError,
    config::{self, Settings},
    error::{Kind, kind},
};
use crate::error::BoxError;

pub(super) type Consumer = BaseConsumer<Context>;

/// Receives what the client library has to tell beside records.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// How many events were served that a poll does not return.
    served: AtomicU64,
    trouble: Mutex<Trouble>,
}

#[derive(Debug, Default)]
struct Trouble {
    last: Option<String>,
    refused: Option<String>,
}

impl Context {
    fn serve(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    fn note(&self, code: Option<Code>, reason: &str) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if code.is_some_and(|code| matches!(kind(code), Kind::Refused | Kind::Handshake)) {
            trouble.refused = Some(reason.to_owned());
        }
        // "All brokers are down" tells less than what was said before of each of them.
        if code != Some(Code::AllBrokersDown) || trouble.last.is_none() {
            trouble.last = Some(reason.to_owned());
        }
    }

    fn forget(&self) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Trouble::default();
    }

    /// The last thing that went wrong.
    pub(super) fn last_trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    /// What was refused since [`forget`](Self::forget).
    fn refused(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).refused.clone()
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.serve();
        match level {
            // A connection that fails is told as an error, too.
            _ if facility == "FAIL" => tracing::debug!("kafka: {message}"),
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning => tracing::warn!("kafka: {message}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => tracing::info!("kafka: {message}"),
            RDKafkaLogLevel::Debug => tracing::debug!("kafka: {message}"),
        }
    }

    fn error(&self, error: ClientError, reason: &str) {
        let code = error.rdkafka_error_code();
        match code.map(kind) {
            // The end of a partition arrives here too.
            _ if code == Some(Code::PartitionEOF) => return,
            Some(Kind::Group) => tracing::debug!("kafka: {reason}"),
            _ => tracing::warn!("kafka: {reason}"),
        }
        self.note(code, reason);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        self.serve();
        tracing::debug!("kafka: {}", String::from_utf8_lossy(statistics));
    }
}

impl ConsumerContext for Context {}

pub(super) fn connect(settings: &Settings, client_id: &str) -> Result<Consumer, KafkaError> {
    let config = settings.client_config(client_id)?;
    BaseConsumer::from_config_and_context(&config, Context::default()).map_err(config::refused)
}

/// The next record or error that is there already.
#[inline]
pub(super) fn poll(consumer: &Consumer) -> Option<KafkaResult<BorrowedMessage<'_>>> {
    let context = consumer.client().context();
    loop {
        let served = context.served.load(Ordering::Relaxed);
        match consumer.poll(Duration::ZERO) {
            // `None` may also mean that a line of the log was served. Nobody would wake us for what is behind it.
            None if context.served.load(Ordering::Relaxed) != served => continue,
            polled => return polled,
        }
    }
}

/// Closes a client elsewhere: that waits for its threads.
pub(super) fn drop_elsewhere<T: Send + 'static>(client: T) {
    // If there is no thread to be had, the closure is dropped right here, and the client with it.
    let _ = thread::Builder::new().name("flow-kafka-close".into()).spawn(move || drop(client));
}

/// Runs something that blocks on a thread of its own. The runtime's threads for that would hold up its end.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KafkaError> + Send + 'static,
) -> Result<T, BoxError> {
    let (tell, told) = tokio::sync::oneshot::channel();
    thread::Builder::new().name("flow-kafka-ask".into()).spawn(move || {
        let _ = tell.send(work());
    })?;
    Ok(told.await.map_err(|_| KafkaError::failed("kafka client", "its thread panicked"))??)
}

/// A connection for questions.
pub(super) struct Admin {
    /// Empty only while it is dropped.
    consumer: Option<Consumer>,
    settings: Settings,
}

/// How long one attempt may take, so that a refusal is noticed soon.
const SLICE: Duration = Duration::from_secs(2);

impl Admin {
    pub(super) fn connect(settings: &Settings) -> Result<Self, KafkaError> {
        let consumer = connect(settings, "flow-discovery")?;
        Ok(Admin { consumer: Some(consumer), settings: settings.clone() })
    }

    /// The partitions of a topic, ascending.
    pub(super) fn partitions(&self, topic: &str) -> Result<Vec<i32>, KafkaError> {
        let mut partitions = self.retry(topic, |consumer, timeout| {
            let metadata = consumer.fetch_metadata(Some(topic), timeout)?;
            let Some(found) = metadata.topics().first() else {
                return Err(ClientError::MetadataFetch(Code::UnknownTopicOrPartition));
            };
            if let Some(error) = found.error() {
                return Err(ClientError::MetadataFetch(error.into()));
            }
            Ok(found.partitions().iter().map(|partition| partition.id()).collect::<Vec<_>>())
        })?;
        partitions.sort_unstable();
        Ok(partitions)
    }

    /// The offsets of these partitions at a time, in their order. [`Offset::Beginning`] and [`Offset::End`] are
    /// such times; where no record is as late as the time, the offset is the end's.
    pub(super) fn offsets(
        &self,
        topic: &str,
        partitions: &[i32],
        at: Offset,
    ) -> Result<Vec<i64>, KafkaError> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let mut offsets = self.retry(topic, |consumer, timeout| {
            let list = consumer.offsets_for_times(list(topic, partitions, at)?, timeout)?;
            in_order(&list, topic, partitions)
        })?;
        if offsets.contains(&Offset::End) {
            let ends = self.offsets(topic, partitions, Offset::End)?;
            for (offset, end) in offsets.iter_mut().zip(ends) {
                if *offset == Offset::End {
                    *offset = Offset::Offset(end);
                }
            }
        }
        offsets.into_iter().map(|offset| known(topic, offset)).collect()
    }

    /// Where the group stopped in these partitions, in their order.
    pub(super) fn committed(&self, topic: &str, partitions: &[i32]) -> Result<Vec<Option<i64>>, KafkaError> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let offsets = self.retry(topic, |consumer, timeout| {
            let list = consumer.committed_offsets(list(topic, partitions, Offset::Invalid)?, timeout)?;
            in_order(&list, topic, partitions)
        })?;
        offsets
            .into_iter()
            .map(|offset| if offset == Offset::Invalid { Ok(None) } else { known(topic, offset).map(Some) })
            .collect()
    }

    /// Where the group stopped in a partition, and what was noted beside it.
    pub(super) fn committed_with_metadata(
        &self,
        topic: &str,
        partition: i32,
    ) -> Result<Option<(i64, String)>, KafkaError> {
        self.retry(topic, |consumer, timeout| {
            let list = list(topic, &[partition], Offset::Invalid)?;
            let list = consumer.committed_offsets(list, timeout)?;
            let Some(found) = list.find_partition(topic, partition) else {
                return Err(ClientError::MetadataFetch(Code::UnknownPartition));
            };
            found.error()?;
            Ok(match found.offset() {
                Offset::Offset(offset) => Some((offset, found.metadata().to_owned())),
                _ => None,
            })
        })
    }

    /// The group as a transaction needs it.
    pub(super) fn group_metadata(&self) -> Result<ConsumerGroupMetadata, KafkaError> {
        let metadata = self.consumer.as_ref().and_then(|consumer| consumer.group_metadata());
        metadata.ok_or_else(|| KafkaError::failed("kafka client", "it has no group"))
    }

    /// The cluster's id and one of its brokers, as far as they are known.
    pub(super) fn cluster(&self, topic: &str) -> (Option<String>, Option<i32>) {
        let Some(consumer) = &self.consumer else { return (None, None) };
        let id = consumer.client().fetch_cluster_id(SLICE);
        let metadata = consumer.fetch_metadata(Some(topic), SLICE).ok();
        (id, metadata.and_then(|metadata| metadata.brokers().first().map(|broker| broker.id())))
    }

    /// Asks until there is an answer, or no hope of one.
    fn retry<T>(
        &self,
        topic: &str,
        ask: impl Fn(&Consumer, Duration) -> KafkaResult<T>,
    ) -> Result<T, KafkaError> {
        let Some(consumer) = &self.consumer else {
            return Err(KafkaError::failed("kafka client", "it is closed"));
        };
        consumer.client().context().forget();
        let deadline = Instant::now() + self.settings.connect_timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = ask(consumer, left.min(SLICE));
            // Nothing is assigned to this consumer, so that it has only news of the connection.
            while poll(consumer).is_some() {}
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let context = consumer.client().context();
            if let Some(reason) = context.refused() {
                return Err(KafkaError::Refused { what: format!("`{}`", self.settings.brokers), reason });
            }
            match error.rdkafka_error_code().map_or(Kind::Fatal, kind) {
                Kind::UnknownTopic => return Err(self.unknown_topic(consumer, topic)),
                Kind::Refused | Kind::Handshake => {
                    return Err(KafkaError::Refused {
                        what: format!("topic `{topic}`"),
                        reason: error.to_string(),
                    });
                }
                Kind::Group if error.rdkafka_error_code() == Some(Code::GroupAuthorizationFailed) => {
                    let what = format!("group `{}`", self.settings.group.as_deref().unwrap_or_default());
                    return Err(KafkaError::Refused { what, reason: error.to_string() });
                }
                Kind::Transient | Kind::Group if left.is_zero() => {
                    return Err(KafkaError::Unreachable {
                        brokers: self.settings.brokers.clone(),
                        waited: self.settings.connect_timeout,
                        last: context.last_trouble().or_else(|| Some(error.to_string())),
                    });
                }
                Kind::Transient | Kind::Group => thread::sleep(Duration::from_millis(50)),
                Kind::OutOfRange | Kind::Fatal => {
                    return Err(KafkaError::failed(format!("kafka topic `{topic}`"), error));
                }
            }
        }
    }

    fn unknown_topic(&self, consumer: &Consumer, topic: &str) -> KafkaError {
        // Only a help: without an answer there is none.
        let names: Vec<String> = consumer
            .fetch_metadata(None, SLICE)
            .map(|all| all.topics().iter().map(|topic| topic.name().to_owned()).collect())
            .unwrap_or_default();
        KafkaError::UnknownTopic { topic: topic.to_owned(), similar: similar(topic, names) }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop_elsewhere(self.consumer.take());
    }
}

fn list(topic: &str, partitions: &[i32], at: Offset) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition_offset(topic, *partition, at)?;
    }
    Ok(list)
}

fn in_order(list: &TopicPartitionList, topic: &str, partitions: &[i32]) -> KafkaResult<Vec<Offset>> {
    partitions
        .iter()
        .map(|partition| {
            let Some(found) = list.find_partition(topic, *partition) else {
                return Err(ClientError::MetadataFetch(Code::UnknownPartition));
            };
            found.error()?;
            Ok(found.offset())
        })
        .collect()
}

fn known(topic: &str, offset: Offset) -> Result<i64, KafkaError> {
    match offset {
        Offset::Offset(offset) => Ok(offset),
        other => {
            Err(KafkaError::failed(format!("kafka topic `{topic}`"), format!("unknown offset {other:?}")))
        }
    }
}

/// The names that someone may have meant, the nearest first.
fn similar(wanted: &str, names: Vec<String>) -> Vec<String> {
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .filter(|name| !name.starts_with("__"))
        .filter_map(|name| {
            let distance = distance(&wanted.to_lowercase(), &name.to_lowercase());
            (distance <= wanted.chars().count() / 3).then_some((distance, name))
        })
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// How many letters differ (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// A connection that is made when it is first needed.
#[derive(Default)]
pub(super) struct SharedAdmin(Mutex<Option<Arc<Admin>>>);

impl SharedAdmin {
    pub(super) fn get(&self, settings: &Settings) -> Result<Arc<Admin>, KafkaError> {
        let mut admin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(admin) = &*admin {
            return Ok(Arc::clone(admin));
        }
        let new = Arc::new(Admin::connect(settings)?);
        *admin = Some(Arc::clone(&new));
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let names = ["clicks", "click", "orders", "__consumer_offsets"].map(str::to_owned).to_vec();
        assert_eq!(similar("clicsk", names.clone()), ["click", "clicks"]);
        assert_eq!(similar("Clicks", names.clone()), ["clicks", "click"]);
        assert!(similar("payments", names).is_empty());
    }
}
