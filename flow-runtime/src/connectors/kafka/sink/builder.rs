//! The sink as a pipeline describes it.

use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    Compression, DirectWriter, JsonRecords, JsonValues, KafkaBuffer, KafkaCommitter, NoCommitter, Recovery,
    Staged, StagingWriter, Values, WithHeader, WithKey, WithPartition, WithTimestamp,
    check::{Limits, check},
    marker::Owner,
    recover::Recovering,
    setup::Setup,
    writer::Gate,
};
use crate::{
    connectors::kafka::client::blocking,
    error::BoxError,
    sink::{ExactlyOnce, Recovered, Sink, SinkContext},
};

/// Records are staged in the checkpoint and produced once it is complete, in one transaction with a marker: exactly once.
#[derive(Clone, Copy, Debug)]
pub enum Transactional {}

/// Records are produced as they come, and again after a crash: at least once.
#[derive(Clone, Copy, Debug)]
pub enum Idempotent {}

/// A topic to write: made by [`to`](super::to), and configured by its methods. See [there](super) for what it promises.
///
/// `F` is the [`Form`](super::Form) of its records, and `M` whether it is exactly once.
pub struct KafkaSink<F, M = Transactional> {
    setup: Arc<Setup>,
    pub(super) form: Arc<F>,
    /// What the brokers said when the job started.
    limits: Arc<Mutex<Option<Limits>>>,
    mode: PhantomData<fn(M)>,
}

impl KafkaSink<Values> {
    pub(super) fn new(topic: String) -> Self {
        KafkaSink {
            setup: Arc::new(Setup::new(topic)),
            form: Arc::new(Values),
            limits: Arc::default(),
            mode: PhantomData,
        }
    }
}

impl<F, M> KafkaSink<F, M> {
    fn change(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(Arc::make_mut(&mut self.setup));
        self
    }

    /// The brokers to ask first, as `host:port`, separated by commas. They name the others.
    #[must_use]
    pub fn brokers(self, brokers: impl Into<String>) -> Self {
        self.change(|setup| setup.brokers = brokers.into())
    }

    /// How to compress what goes to the brokers: not at all unless said.
    #[must_use]
    pub fn compression(self, compression: Compression) -> Self {
        self.change(|setup| setup.compression = compression)
    }

    /// A [property of librdkafka](https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md).
    ///
    /// Those that would break what the sink promises are refused when the job starts. The `partitioner` is
    /// `murmur2_random` unless set here, so that equal keys go where the Java clients send them. TLS and SASL/SCRAM
    /// need the crate feature `kafka-tls`.
    #[must_use]
    pub fn property(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|setup| {
            setup.properties.insert(key.into(), value.into());
        })
    }

    /// How long to wait for the brokers when the job starts: 15 seconds by default.
    #[must_use]
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        self.change(|setup| setup.connect_timeout = timeout)
    }

    /// Writes records in a [`Form`](super::Form) of your own.
    pub fn form<G>(self, form: G) -> KafkaSink<G, M> {
        KafkaSink { setup: self.setup, form: Arc::new(form), limits: self.limits, mode: PhantomData }
    }

    /// Writes each record as JSON, without a key unless [`key`](Self::key) gives one.
    ///
    /// ```
    /// use flow_runtime::connectors::kafka;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Order {
    ///     id: u64,
    ///     item: String,
    /// }
    ///
    /// let sink = kafka::to("orders").brokers("localhost:9092").json().key(|order: &Order| order.id);
    /// ```
    pub fn json(self) -> KafkaSink<JsonRecords, M> {
        self.form(JsonRecords)
    }

    /// Writes pairs of a key, which is text, bytes or an integer, and a value, which becomes JSON.
    pub fn json_values(self) -> KafkaSink<JsonValues, M> {
        self.form(JsonValues)
    }
}

/// Closures that see each record. Say the type of their argument: `|order: &Order| ..`. What they return owns its data;
/// where a copy per record is too much, `.map` the stream to pairs or to [`Record`](super::Record)s, which may borrow.
impl<F: Clone, M> KafkaSink<F, M> {
    fn with<G>(self, form: impl FnOnce(F) -> G) -> KafkaSink<G, M> {
        let inner = F::clone(&self.form);
        self.form(form(inner))
    }

    /// The key of each record. Records with equal keys go to the same partition and keep their order.
    pub fn key<G: Send + Sync + 'static>(self, key: G) -> KafkaSink<WithKey<F, G>, M> {
        self.with(|inner| WithKey(inner, key))
    }

    /// Adds a header to each record, with the value that the closure gives it.
    ///
    /// ```
    /// # use flow_runtime::connectors::kafka;
    /// let sink = kafka::to("orders").header("source", |_: &String| "shop-1");
    /// ```
    pub fn header<G: Send + Sync + 'static>(
        self,
        name: impl Into<String>,
        value: G,
    ) -> KafkaSink<WithHeader<F, G>, M> {
        self.with(|inner| WithHeader(inner, name.into(), value))
    }

    /// The partition of each record, an `i32` from 0, instead of the one that the partitioner would choose by its key. It
    /// has to exist: otherwise the job fails.
    pub fn partition<G: Send + Sync + 'static>(self, partition: G) -> KafkaSink<WithPartition<F, G>, M> {
        self.with(|inner| WithPartition(inner, partition))
    }

    /// The timestamp of each record, an `i64`, in milliseconds since 1970, instead of the time at which it is sent.
    pub fn timestamp<G: Send + Sync + 'static>(self, timestamp: G) -> KafkaSink<WithTimestamp<F, G>, M> {
        self.with(|inner| WithTimestamp(inner, timestamp))
    }
}

impl<F> KafkaSink<F, Transactional> {
    /// Writes records as they come instead of with the checkpoint: sooner, without transactions, and again after a crash.
    ///
    /// The producer is idempotent, so that its own retries neither repeat nor reorder anything. At a checkpoint the sink
    /// waits until the brokers have everything. While they do not take more, the job slows down.
    #[must_use]
    pub fn at_least_once(self) -> KafkaSink<F, Idempotent> {
        KafkaSink { setup: self.setup, form: self.form, limits: self.limits, mode: PhantomData }
    }

    /// How long the brokers let a transaction take before they give it up: a minute by default. The records of one
    /// checkpoint and subtask have to be written within it. While a job that was killed leaves a transaction open, readers
    /// of committed records wait: until the job is back, but never longer than this.
    ///
    /// It must not be longer than the brokers' `transaction.max.timeout.ms`, 15 minutes unless they were told otherwise;
    /// that is checked when the job starts.
    #[must_use]
    pub fn transaction_timeout(self, timeout: Duration) -> Self {
        self.change(|setup| setup.transaction_timeout = timeout)
    }

    /// What the transactional ids begin with, and the names of the consumer groups that hold the markers: `flow` unless
    /// set. Clusters with access rules grant them by prefix. The rest is `:JOB:SINK:SUBTASK`.
    ///
    /// With another prefix a job does not find its markers, so choose it before the first start.
    #[must_use]
    pub fn transactional_id_prefix(self, prefix: impl Into<String>) -> Self {
        self.change(|setup| setup.prefix = prefix.into())
    }

    /// What to do when the job starts and the markers in the cluster do not fit its checkpoint: refuse unless set.
    /// Meant to be set for one start, after the sink has refused.
    #[must_use]
    pub fn recovery(self, recovery: Recovery) -> Self {
        self.change(|setup| setup.recovery = recovery)
    }
}

impl<F, M> KafkaSink<F, M> {
    fn limits(&self) -> Option<Limits> {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn check(&self, cx: &SinkContext, transactions: bool) -> Result<Limits, BoxError> {
        let limits = check(&self.setup, transactions)
            .await
            .map_err(|error| format!("sink `{}`: {error}", cx.operator))?;
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = Some(limits);
        Ok(limits)
    }
}

impl<F: Send + Sync + 'static> Sink for KafkaSink<F, Transactional> {
    type Buffer = KafkaBuffer<F>;
    type Handle = Staged;
    type Writer = StagingWriter<F>;
    type Committer = KafkaCommitter;

    fn buffer(&self, _: &SinkContext) -> KafkaBuffer<F> {
        KafkaBuffer::new(Arc::clone(&self.form))
    }

    async fn recover(&self, cx: &SinkContext, handles: Vec<Recovered<Staged>>) -> Result<(), BoxError> {
        let limits = self.check(cx, true).await?;
        let (setup, owner) = (Arc::clone(&self.setup), Owner::new(&self.setup.prefix, cx));
        let (parallelism, restored, sink) = (cx.parallelism, cx.restored, cx.operator.clone());
        let recovered = blocking(move || {
            let (setup, limits, owner, handles) = (&setup, &limits, &owner, &*handles);
            Ok(Recovering { setup, limits, owner, parallelism, restored, handles }.run())
        });
        recovered.await?.map_err(|fault| match fault.text.starts_with("sink `") {
            true => fault.text.into(),
            false => format!("sink `{sink}`: {}", fault.text).into(),
        })
    }

    async fn open(&self, cx: &SinkContext) -> Result<(StagingWriter<F>, KafkaCommitter), BoxError> {
        let limits = match self.limits() {
            Some(limits) => limits,
            None => self.check(cx, true).await?,
        };
        let (setup, owner) = (Arc::clone(&self.setup), Owner::new(&self.setup.prefix, cx));
        let (committer, previous) =
            KafkaCommitter::open(Arc::clone(&setup), limits, owner, cx.subtask).await?;
        Ok((StagingWriter::new(Gate { setup, limits }, cx.attempt, previous)?, committer))
    }
}

impl<F: Send + Sync + 'static> Sink for KafkaSink<F, Idempotent> {
    type Buffer = KafkaBuffer<F>;
    type Handle = ();
    type Writer = DirectWriter<F>;
    type Committer = NoCommitter;

    fn buffer(&self, _: &SinkContext) -> KafkaBuffer<F> {
        KafkaBuffer::new(Arc::clone(&self.form))
    }

    async fn recover(&self, cx: &SinkContext, _: Vec<Recovered<()>>) -> Result<(), BoxError> {
        self.check(cx, false).await.map(drop)
    }

    async fn open(&self, cx: &SinkContext) -> Result<(DirectWriter<F>, NoCommitter), BoxError> {
        let limits = match self.limits() {
            Some(limits) => limits,
            None => self.check(cx, false).await?,
        };
        Ok((DirectWriter::open(&self.setup, limits, cx)?, NoCommitter))
    }
}

#[diagnostic::do_not_recommend]
impl<F: Send + Sync + 'static> ExactlyOnce for KafkaSink<F, Transactional> {}

impl<F, M> Clone for KafkaSink<F, M> {
    fn clone(&self) -> Self {
        KafkaSink {
            setup: Arc::clone(&self.setup),
            form: Arc::clone(&self.form),
            limits: Arc::clone(&self.limits),
            mode: PhantomData,
        }
    }
}

impl<F, M> fmt::Debug for KafkaSink<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink").field("setup", &self.setup).finish_non_exhaustive()
    }
}
