//! What to read of Kafka, and from where.

use std::{
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rdkafka::Offset;

use super::{
    Format, KafkaBatch, KafkaError, KafkaReader, KafkaSplit, Start,
    batch::Invalid,
    client::{Admin, SharedAdmin, blocking},
    config::Settings,
};
use crate::{
    error::BoxError,
    source::{Bounded, Rewindable, Source, SourceContext},
};

/// Marks a source that reads on as long as the job runs.
#[derive(Clone, Copy, Debug)]
pub struct Endless;

/// Marks a source that stops at the ends which the partitions had when the job started.
#[derive(Clone, Copy, Debug)]
pub struct AtEnd;

/// One or more topics to read. Made by [`lines`](super::lines) and its siblings; see [there](super) for what it
/// promises.
pub struct KafkaSource<F, E = Endless> {
    plan: Plan,
    format: Arc<F>,
    skip_invalid: bool,
    discover_every: Option<Duration>,
    shared: Arc<Shared>,
    end: PhantomData<E>,
}

/// What discovery needs.
#[derive(Clone)]
struct Plan {
    settings: Settings,
    topics: Vec<Arc<str>>,
    start: Option<Start>,
    bounded: bool,
}

/// What is kept between calls.
#[derive(Default)]
struct Shared {
    admin: Arc<SharedAdmin>,
    found: Mutex<Option<Found>>,
}

/// What earlier calls of discovery have found.
#[derive(Clone, Default)]
struct Found {
    splits: Vec<KafkaSplit>,
    starts: HashMap<(Arc<str>, i32), i64>,
}

impl<F: Format> KafkaSource<F> {
    pub(super) fn new(topics: impl IntoTopics, format: F) -> Self {
        KafkaSource {
            plan: Plan {
                settings: Settings::default(),
                topics: topics.into_topics().into_iter().map(Arc::from).collect(),
                start: None,
                bounded: false,
            },
            format: Arc::new(format),
            skip_invalid: false,
            discover_every: Some(Duration::from_secs(10)),
            shared: Arc::default(),
            end: PhantomData,
        }
    }

    /// Stops at the ends that the partitions have when the job first starts, so that the job ends by itself. The
    /// ends are kept in the checkpoint: a restored job stops where the first one would have.
    ///
    /// Records of transactions that are still open at the start lie behind the end.
    pub fn bounded(self) -> KafkaSource<F, AtEnd> {
        let mut plan = self.plan;
        plan.bounded = true;
        KafkaSource {
            plan,
            format: self.format,
            skip_invalid: self.skip_invalid,
            discover_every: self.discover_every,
            shared: self.shared,
            end: PhantomData,
        }
    }

    /// Like [`bounded`](Self::bounded) if `bounded` is true, for a choice that is made when the job runs. To the
    /// compiler the source stays one that may never end.
    pub fn bounded_if(mut self, bounded: bool) -> Self {
        self.plan.bounded = bounded;
        self
    }
}

impl<F: Format, E> KafkaSource<F, E> {
    /// The brokers to ask first, as `host:port`, separated by commas. They name the others.
    pub fn brokers(mut self, brokers: impl Into<String>) -> Self {
        self.plan.settings.brokers = brokers.into();
        self
    }

    /// The consumer group whose committed offsets a first start begins at, unless [`start`](Self::start) says
    /// otherwise.
    ///
    /// The source never joins the group: which subtask reads which partition is the job's affair. Nor does it commit
    /// offsets to it, since those that count are in the checkpoint; a job without a checkpoint therefore begins at
    /// the same place each time.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.plan.settings.group = Some(group.into());
        self
    }

    /// Where to begin in partitions whose offset no checkpoint knows. By default at
    /// [`Start::Committed`] if there is a [`group`](Self::group) and otherwise at [`Start::Earliest`].
    ///
    /// Partitions that appear while the job runs, or between a checkpoint and the restore, are always read from
    /// their first record.
    pub fn start(mut self, start: Start) -> Self {
        self.plan.start = Some(start);
        self
    }

    /// A [property of librdkafka](https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md).
    ///
    /// Those that the source itself depends on are refused when the job starts. `isolation.level` is
    /// `read_committed` unless set here. TLS and SASL/SCRAM need the crate feature `kafka-tls`.
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.plan.settings.properties.insert(key.into(), value.into());
        self
    }

    /// How often to look for new partitions while the job runs: every 10 seconds by default, `None` for never. A
    /// bounded source never looks.
    pub fn discover_every(mut self, interval: impl Into<Option<Duration>>) -> Self {
        self.discover_every = interval.into();
        self
    }

    /// How long to wait for the brokers when the job starts: 15 seconds by default. Later on a source waits for
    /// ever.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.plan.settings.connect_timeout = timeout;
        self
    }

    /// Passes over records that the format cannot read, text that is not UTF-8 or JSON that is not the expected
    /// one, and writes the first of them, their number, and then one every 10 seconds to the log. By default they
    /// fail the job, with their topic, partition and offset.
    pub fn skip_invalid(mut self) -> Self {
        self.skip_invalid = true;
        self
    }
}

impl<F: Format, E: Send + Sync + 'static> Source for KafkaSource<F, E> {
    type Split = KafkaSplit;
    type Batch = KafkaBatch<F>;
    type Reader = KafkaReader<F>;

    async fn discover(&self, restored: bool) -> Result<Vec<KafkaSplit>, BoxError> {
        let (plan, shared) = (self.plan.clone(), Arc::clone(&self.shared));
        blocking(move || plan.discover_or_wait(&shared, restored)).await
    }

    fn discovery_interval(&self) -> Option<Duration> {
        if self.plan.bounded { None } else { self.discover_every }
    }

    async fn open(&self, cx: SourceContext, mut splits: Vec<KafkaSplit>) -> Result<KafkaReader<F>, BoxError> {
        if !self.plan.bounded {
            // Of a run that was bounded.
            splits.iter_mut().for_each(|split| split.set_end(None));
        } else if splits.iter().any(|split| split.end().is_none()) {
            // Of a run that was not.
            let (plan, shared) = (self.plan.clone(), Arc::clone(&self.shared));
            splits = blocking(move || {
                let admin = shared.admin.get(&plan.settings)?;
                add_ends(&admin, &mut splits)?;
                Ok(splits)
            })
            .await?;
        }
        let mut reader = KafkaReader::new(
            self.plan.settings.clone(),
            Arc::clone(&self.shared.admin),
            Arc::clone(&self.format),
            Arc::new(Invalid::new(self.skip_invalid)),
            self.plan.bounded,
            &cx,
        );
        reader.assign(splits).await?;
        Ok(reader)
    }
}

#[diagnostic::do_not_recommend]
impl<F: Format, E: Send + Sync + 'static> Rewindable for KafkaSource<F, E> {}
impl<F: Format> Bounded for KafkaSource<F, AtEnd> {}

impl<F, E> fmt::Debug for KafkaSource<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSource")
            .field("topics", &self.plan.topics)
            .field("settings", &self.plan.settings)
            .field("start", &self.plan.start())
            .field("bounded", &self.plan.bounded)
            .finish_non_exhaustive()
    }
}

impl Plan {
    fn start(&self) -> Start {
        let by_default = || if self.settings.group.is_some() { Start::Committed } else { Start::Earliest };
        self.start.unwrap_or_else(by_default)
    }

    /// An outage of the cluster is no reason to end a job that runs: it has the partitions it knows.
    fn discover_or_wait(&self, shared: &Shared, restored: bool) -> Result<Vec<KafkaSplit>, KafkaError> {
        let found = shared.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (self.discover(shared, found.as_ref(), restored), found) {
            (Err(error @ KafkaError::Unreachable { .. }), Some(found)) => {
                tracing::warn!("looking for new partitions: {error}");
                Ok(found.splits)
            }
            (result, _) => result,
        }
    }

    fn discover(
        &self,
        shared: &Shared,
        earlier: Option<&Found>,
        restored: bool,
    ) -> Result<Vec<KafkaSplit>, KafkaError> {
        if self.topics.is_empty() {
            return Err(KafkaError::NoTopic);
        }
        if self.start() == Start::Committed && self.settings.group.is_none() {
            return Err(KafkaError::NoGroup);
        }
        let admin = shared.admin.get(&self.settings)?;
        let mut found = Found::default();
        for topic in &self.topics {
            let partitions = admin.partitions(topic)?;
            let starts = match earlier {
                Some(earlier) => self.starts_again(&admin, topic, &partitions, earlier)?,
                None if restored => admin.offsets(topic, &partitions, Offset::Beginning)?,
                None => self.first_starts(&admin, topic, &partitions)?,
            };
            let ends =
                if self.bounded { admin.offsets(topic, &partitions, Offset::End)? } else { Vec::new() };
            for (index, (partition, next)) in partitions.into_iter().zip(starts).enumerate() {
                let mut split = KafkaSplit::new(Arc::clone(topic), partition, next);
                split.set_end(ends.get(index).copied());
                found.splits.push(split);
                found.starts.insert((Arc::clone(topic), partition), next);
            }
        }
        let splits = found.splits.clone();
        *shared.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(splits)
    }

    fn first_starts(&self, admin: &Admin, topic: &str, partitions: &[i32]) -> Result<Vec<i64>, KafkaError> {
        match self.start() {
            Start::Earliest => admin.offsets(topic, partitions, Offset::Beginning),
            Start::Latest => admin.offsets(topic, partitions, Offset::End),
            Start::Timestamp(at) => admin.offsets(topic, partitions, Offset::Offset(at.max(0))),
            Start::Committed => {
                let committed = admin.committed(topic, partitions)?;
                let earliest = admin.offsets(topic, partitions, Offset::Beginning)?;
                Ok(committed.into_iter().zip(earliest).map(|(at, earliest)| at.unwrap_or(earliest)).collect())
            }
        }
    }

    /// Partitions that were not there before start at their first record. The others keep their start, so that a job
    /// that begins anew before its first checkpoint loses nothing, unless they start at the first record anyway.
    fn starts_again(
        &self,
        admin: &Admin,
        topic: &Arc<str>,
        partitions: &[i32],
        earlier: &Found,
    ) -> Result<Vec<i64>, KafkaError> {
        let mut starts = admin.offsets(topic, partitions, Offset::Beginning)?;
        if self.start() != Start::Earliest {
            for (start, partition) in starts.iter_mut().zip(partitions) {
                if let Some(first) = earlier.starts.get(&(Arc::clone(topic), *partition)) {
                    *start = *first;
                }
            }
        }
        Ok(starts)
    }
}

fn add_ends(admin: &Admin, splits: &mut [KafkaSplit]) -> Result<(), KafkaError> {
    for split in splits.iter_mut().filter(|split| split.end().is_none()) {
        let ends = admin.offsets(split.topic(), &[split.partition()], Offset::End)?;
        split.set_end(ends.first().copied());
    }
    Ok(())
}

/// One topic, or a list of them.
pub trait IntoTopics {
    /// The names.
    fn into_topics(self) -> Vec<String>;
}

impl IntoTopics for &str {
    fn into_topics(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl IntoTopics for String {
    fn into_topics(self) -> Vec<String> {
        vec![self]
    }
}

impl IntoTopics for &String {
    fn into_topics(self) -> Vec<String> {
        vec![self.clone()]
    }
}

impl<S: Into<String>, const N: usize> IntoTopics for [S; N] {
    fn into_topics(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<S: Into<String>> IntoTopics for Vec<S> {
    fn into_topics(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<S: AsRef<str>> IntoTopics for &[S] {
    fn into_topics(self) -> Vec<String> {
        self.iter().map(|name| name.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<str>> IntoTopics for &Vec<S> {
    fn into_topics(self) -> Vec<String> {
        self.as_slice().into_topics()
    }
}
