//! Fetches records in batches, off the worker.
//!
//! librdkafka fetches ahead on threads of its own and wakes the reader when its queue is no longer empty; the reader
//! then copies what is there into a batch. It has no thread itself: that would only add a hand-over, and something to
//! stop when the job restarts.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
    time::Duration,
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::Consumer as _,
    error::{KafkaError as ClientError, KafkaResult},
    message::Message as _,
};
use tokio::sync::Notify;

use super::{
    Format, KafkaBatch, KafkaError, KafkaSplit,
    batch::Invalid,
    client::{Admin, Consumer, SharedAdmin, blocking, connect, drop_elsewhere, poll},
    config::Settings,
    error::{Kind, kind},
};
use crate::{
    error::BoxError,
    source::{Fetched, Progress, SourceContext, SourceReader, Split as _},
};

/// How often a reader without records looks at its queue all the same.
const IDLE: Duration = Duration::from_secs(1);
/// How often in a row an offset may be refused that the broker says it has.
const OFFSET_RETRIES: u32 = 5;

/// Reads the partitions of one subtask.
pub struct KafkaReader<F> {
    settings: Settings,
    admin: Arc<SharedAdmin>,
    client_id: String,
    format: Arc<F>,
    invalid: Arc<Invalid>,
    bounded: bool,
    topics: Vec<Topic>,
    /// The topic to begin with, so that a busy one does not starve the others.
    turn: usize,
    wake: Arc<Notify>,
    /// Stays until it is dealt with, also when the future that does so is dropped.
    trouble: Option<Trouble>,
    offset_retries: u32,
}

/// A topic has a client of its own, because the client's news of reaching the end of a partition does not tell the
/// topic.
struct Topic {
    name: Arc<str>,
    consumer: Consumer,
    partitions: Vec<Partition>,
    /// The index in `partitions` by number.
    by_number: Vec<Option<usize>>,
    /// Whether an end was reached, behind which the position may have moved over control records.
    reached_end: bool,
}

struct Partition {
    split: KafkaSplit,
    /// Whether the client knows of it.
    assigned: bool,
    /// Whether the position has changed since it was last told.
    moved: bool,
    finished: bool,
    /// Whether it waits for others that are behind.
    paused: bool,
}

enum Trouble {
    Error(KafkaError),
    /// Some partition of the topic of this index has an offset that the broker refuses.
    OffsetRefused(usize),
}

impl<F: Format> KafkaReader<F> {
    pub(super) fn new(
        settings: Settings,
        admin: Arc<SharedAdmin>,
        format: Arc<F>,
        invalid: Arc<Invalid>,
        bounded: bool,
        cx: &SourceContext,
    ) -> Self {
        KafkaReader {
            settings,
            admin,
            client_id: client_id(cx),
            format,
            invalid,
            bounded,
            topics: Vec::new(),
            turn: 0,
            wake: Arc::new(Notify::new()),
            trouble: None,
            offset_retries: 0,
        }
    }

    /// Begins to read these splits too.
    pub(super) async fn assign(&mut self, splits: Vec<KafkaSplit>) -> Result<(), BoxError> {
        if splits.is_empty() {
            return Ok(());
        }
        let (admin, settings) = (Arc::clone(&self.admin), self.settings.clone());
        let splits = blocking(move || {
            check_offsets(&*admin.get(&settings)?, &splits)?;
            Ok(splits)
        })
        .await?;
        for split in splits {
            let index = match self.topics.iter().position(|topic| *topic.name == *split.topic()) {
                Some(index) => index,
                None => {
                    self.topics.push(Topic::new(
                        Arc::clone(split.topic_name()),
                        connect(&self.settings, &self.client_id)?,
                        &self.wake,
                    ));
                    self.topics.len() - 1
                }
            };
            self.topics[index].add(split);
        }
        for topic in &mut self.topics {
            topic.assign_new()?;
        }
        self.wake.notify_one();
        Ok(())
    }

    /// Copies what is there into the batch.
    fn drain(&mut self, batch: &mut KafkaBatch<F>) {
        let count = self.topics.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            if let Err(trouble) = self.topics[index].drain(index, batch) {
                self.trouble = Some(trouble);
                return;
            }
            if !batch.has_room() {
                self.turn = (index + 1) % count;
                return;
            }
        }
    }

    fn progress(&self) -> Progress {
        let finished = self.bounded
            && self.topics.iter().all(|topic| topic.partitions.iter().all(|partition| partition.finished));
        if finished { Progress::Finished } else { Progress::More }
    }

    fn tell_moved(&mut self, advanced: &mut Vec<KafkaSplit>) {
        for topic in &mut self.topics {
            for partition in &mut topic.partitions {
                if mem::take(&mut partition.moved) {
                    advanced.push(partition.split.clone());
                }
            }
        }
    }

    /// Fails if an offset was refused because it is not there, and otherwise takes the partition up again. Returns
    /// whether there was an answer.
    async fn check_again(&mut self, index: usize) -> Result<bool, BoxError> {
        let Some(topic) = self.topics.get_mut(index) else { return Ok(true) };
        let splits: Vec<KafkaSplit> = topic.unfinished().map(|partition| partition.split.clone()).collect();
        let (admin, settings) = (Arc::clone(&self.admin), self.settings.clone());
        if let Err(error) = blocking(move || check_offsets(&*admin.get(&settings)?, &splits)).await {
            if let Some(KafkaError::Unreachable { .. }) = error.downcast_ref() {
                // The outage comes first, and is waited out.
                return Ok(false);
            }
            return Err(error);
        }
        self.offset_retries += 1;
        if self.offset_retries > OFFSET_RETRIES {
            let what = format!("kafka topic `{}`", topic.name);
            return Err(KafkaError::failed(what, "a broker refuses an offset that it says it has").into());
        }
        tracing::warn!(topic = &*topic.name, "a broker refused an offset that it has; asking again");
        topic.assign_again()?;
        Ok(true)
    }
}

impl<F: Format> SourceReader for KafkaReader<F> {
    type Split = KafkaSplit;
    type Batch = KafkaBatch<F>;

    fn batch(&self) -> KafkaBatch<F> {
        KafkaBatch::new(Arc::clone(&self.format), Arc::clone(&self.invalid))
    }

    async fn fetch(
        &mut self,
        fetched: &mut Fetched<KafkaBatch<F>, KafkaSplit>,
    ) -> Result<Progress, BoxError> {
        fetched.batch.clear();
        // What is taken from the client's queue is returned before the next await, and trouble stays until it is
        // over: a future that is dropped loses nothing.
        loop {
            match &self.trouble {
                None => {}
                Some(Trouble::OffsetRefused(topic)) => {
                    if !self.check_again(*topic).await? {
                        continue;
                    }
                    self.trouble = None;
                }
                Some(Trouble::Error(_)) => {
                    if let Some(Trouble::Error(error)) = self.trouble.take() {
                        return Err(error.into());
                    }
                }
            }
            self.drain(&mut fetched.batch);
            self.tell_moved(&mut fetched.advanced);
            let progress = self.progress();
            if !fetched.batch.is_empty() {
                self.offset_retries = 0;
            }
            if !fetched.batch.is_empty() || !fetched.advanced.is_empty() || progress == Progress::Finished {
                return Ok(progress);
            }
            if self.trouble.is_some() {
                continue;
            }
            if tokio::time::timeout(IDLE, self.wake.notified()).await.is_err() {
                for topic in &mut self.topics {
                    topic.pass_control_records();
                }
            }
        }
    }

    fn pause(&mut self, splits: &BTreeSet<String>) -> Result<bool, BoxError> {
        for topic in &mut self.topics {
            topic.pause(splits)?;
        }
        self.wake.notify_one();
        Ok(true)
    }

    async fn add_splits(&mut self, splits: Vec<KafkaSplit>) -> Result<(), BoxError> {
        self.assign(splits).await
    }
}

impl<F> Drop for KafkaReader<F> {
    fn drop(&mut self) {
        drop_elsewhere(mem::take(&mut self.topics));
    }
}

impl Topic {
    fn new(name: Arc<str>, mut consumer: Consumer, wake: &Arc<Notify>) -> Self {
        let wake = Arc::clone(wake);
        consumer.set_nonempty_callback(move || wake.notify_one());
        Topic { name, consumer, partitions: Vec::new(), by_number: Vec::new(), reached_end: false }
    }

    fn add(&mut self, split: KafkaSplit) {
        let Ok(number) = usize::try_from(split.partition()) else { return };
        if number >= self.by_number.len() {
            self.by_number.resize(number + 1, None);
        }
        if self.by_number[number].is_some() {
            return;
        }
        self.by_number[number] = Some(self.partitions.len());
        let finished = split.is_finished();
        self.partitions.push(Partition { split, assigned: false, moved: false, finished, paused: false });
    }

    fn unfinished(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter().filter(|partition| !partition.finished)
    }

    /// Tells the client to fetch what was added.
    fn assign_new(&mut self) -> Result<(), KafkaError> {
        self.change(
            "assign",
            |partition| !partition.assigned,
            |consumer, list| consumer.incremental_assign(list),
        )?;
        self.partitions.iter_mut().for_each(|partition| partition.assigned = true);
        Ok(())
    }

    /// Tells the client to fetch all that is left anew from where the splits are.
    fn assign_again(&mut self) -> Result<(), KafkaError> {
        self.change("unassign", |_| true, |consumer, list| consumer.incremental_unassign(list))?;
        self.change("assign", |_| true, |consumer, list| consumer.incremental_assign(list))
    }

    /// Tells the client which partitions not to fetch, and which to fetch again.
    fn pause(&mut self, splits: &BTreeSet<String>) -> Result<(), KafkaError> {
        let wanted = |partition: &Partition| splits.contains(&partition.split.id());
        let changes = |partition: &Partition| partition.assigned && partition.paused != wanted(partition);
        self.change(
            "pause",
            |partition| changes(partition) && wanted(partition),
            |consumer, list| consumer.pause(list),
        )?;
        self.change(
            "resume",
            |partition| changes(partition) && !wanted(partition),
            |consumer, list| consumer.resume(list),
        )?;
        for partition in self.partitions.iter_mut().filter(|partition| partition.assigned) {
            partition.paused = splits.contains(&partition.split.id());
        }
        Ok(())
    }

    fn change(
        &self,
        name: &str,
        which: impl Fn(&Partition) -> bool,
        change: impl Fn(&Consumer, &TopicPartitionList) -> KafkaResult<()>,
    ) -> Result<(), KafkaError> {
        let error = |error| KafkaError::failed(format!("kafka topic `{}`: {name}", self.name), error);
        let mut list = TopicPartitionList::new();
        for partition in self.unfinished().filter(|partition| which(partition)) {
            let split = &partition.split;
            list.add_partition_offset(&self.name, split.partition(), Offset::Offset(split.next()))
                .map_err(error)?;
        }
        if list.count() == 0 { Ok(()) } else { change(&self.consumer, &list).map_err(error) }
    }

    fn drain<F: Format>(&mut self, index: usize, batch: &mut KafkaBatch<F>) -> Result<(), Trouble> {
        let mut current = None;
        let mut finished = TopicPartitionList::new();
        let result = loop {
            if !batch.has_room() {
                break Ok(());
            }
            match poll(&self.consumer) {
                None => break Ok(()),
                Some(Ok(message)) => {
                    let number = message.partition();
                    if current.is_none_or(|(known, _)| known != number) {
                        current = find(&self.by_number, number).map(|found| (number, found));
                    }
                    let Some((_, found)) = current else { continue };
                    let partition = &mut self.partitions[found];
                    if partition.finished {
                        continue;
                    }
                    let next = message.offset() + 1;
                    match partition.split.end() {
                        Some(end) if next > end => partition.finish(end, &mut finished),
                        end => {
                            batch.push(&self.name, &message);
                            partition.split.advance(next);
                            partition.moved = true;
                            if end == Some(next) {
                                partition.finish(next, &mut finished);
                            }
                        }
                    }
                }
                Some(Err(ClientError::PartitionEOF(number))) => {
                    let Some(found) = find(&self.by_number, number) else { continue };
                    let partition = &mut self.partitions[found];
                    match partition.split.end() {
                        // What lies between the last record and the end are control records, or records that
                        // compaction has removed.
                        Some(end) if !partition.finished => partition.finish(end, &mut finished),
                        _ => self.reached_end = true,
                    }
                }
                Some(Err(error)) => match error.rdkafka_error_code().map_or(Kind::Fatal, kind) {
                    // Logged already. The client goes on by itself.
                    Kind::Transient | Kind::Handshake | Kind::Group => {}
                    Kind::OutOfRange => break Err(Trouble::OffsetRefused(index)),
                    kind => break Err(Trouble::Error(self.explain(kind, &error))),
                },
            }
        };
        if finished.count() > 0
            && let Err(error) = self.consumer.incremental_unassign(&finished)
        {
            // Its records are ignored in any case; they are fetched for nothing.
            tracing::debug!(topic = &*self.name, "cannot unassign what is finished: {error}");
        }
        result
    }

    fn explain(&self, kind: Kind, error: &ClientError) -> KafkaError {
        let topic = self.name.to_string();
        let last = self.consumer.client().context().last_trouble();
        match kind {
            Kind::UnknownTopic => KafkaError::UnknownTopic { topic, similar: Vec::new() },
            Kind::Refused => KafkaError::Refused {
                what: format!("topic `{topic}`"),
                reason: last.unwrap_or_else(|| error.to_string()),
            },
            _ => KafkaError::failed(
                format!("kafka topic `{topic}`"),
                last.unwrap_or_else(|| error.to_string()),
            ),
        }
    }

    /// Moves the positions behind the control records that end a transaction. Otherwise the offset of such a record
    /// would be the next one for as long as nothing follows it, and retention may delete it.
    fn pass_control_records(&mut self) {
        if !mem::take(&mut self.reached_end) {
            return;
        }
        let Ok(positions) = self.consumer.position() else { return };
        for position in positions.elements() {
            let (Some(found), Offset::Offset(next)) =
                (find(&self.by_number, position.partition()), position.offset())
            else {
                continue;
            };
            let partition = &mut self.partitions[found];
            if next > partition.split.next() && !partition.finished {
                partition.split.advance(next);
                partition.moved = true;
            }
        }
    }
}

impl Partition {
    fn finish(&mut self, end: i64, finished: &mut TopicPartitionList) {
        self.split.advance(end);
        self.moved = true;
        self.finished = true;
        finished.add_partition(self.split.topic(), self.split.partition());
    }
}

fn find(by_number: &[Option<usize>], number: i32) -> Option<usize> {
    by_number.get(usize::try_from(number).ok()?).copied().flatten()
}

/// Whether the brokers have what the splits ask for.
fn check_offsets(admin: &Admin, splits: &[KafkaSplit]) -> Result<(), KafkaError> {
    let mut by_topic: BTreeMap<&str, Vec<&KafkaSplit>> = BTreeMap::new();
    for split in splits {
        by_topic.entry(split.topic()).or_default().push(split);
    }
    for (topic, splits) in by_topic {
        let known = admin.partitions(topic)?;
        if let Some(gone) = splits.iter().find(|split| !known.contains(&split.partition())) {
            let what = format!("kafka topic `{topic}`, partition {}", gone.partition());
            let reason =
                format!("it is not there; the topic has {} partitions. Was it made anew?", known.len());
            return Err(KafkaError::failed(what, reason));
        }
        let partitions: Vec<i32> = splits.iter().map(|split| split.partition()).collect();
        let lows = admin.offsets(topic, &partitions, Offset::Beginning)?;
        let highs = admin.offsets(topic, &partitions, Offset::End)?;
        for (split, (low, high)) in splits.into_iter().zip(lows.into_iter().zip(highs)) {
            let wanted = split.next();
            if !split.is_finished() && !(low..=high).contains(&wanted) {
                let (topic, partition) = (topic.to_owned(), split.partition());
                return Err(KafkaError::OutOfRange { topic, partition, wanted, low, high });
            }
        }
    }
    Ok(())
}

/// What the brokers' logs call us.
fn client_id(cx: &SourceContext) -> String {
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c), "_");
    format!("flow-{}-{}-{}", plain(&cx.job), plain(&cx.operator), cx.subtask)
}
