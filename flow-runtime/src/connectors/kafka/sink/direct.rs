//! A sink that is at least once: it produces at once, idempotently.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use rdkafka::producer::Producer as _;

use super::{
    KafkaBuffer,
    check::Limits,
    encoding::split_record,
    handle::Damaged,
    producer::{self, Fault, Producer, Sent},
    setup::Setup,
    writer::Gate,
};
use crate::{
    checkpoint::CheckpointId,
    connectors::kafka::client::drop_elsewhere,
    error::BoxError,
    sink::{CommitError, Committed, SinkCommitter, SinkContext, SinkWriter},
};

/// Produces records as they come, and waits at each checkpoint until the brokers have all of them.
pub struct DirectWriter<F> {
    gate: Gate,
    /// Empty only while it is dropped.
    producer: Option<Producer>,
    place: String,
    /// The last barrier, and how many records came since.
    since: CheckpointId,
    records: u64,
    form: PhantomData<fn(F)>,
}

impl<F> DirectWriter<F> {
    pub(super) fn open(setup: &Arc<Setup>, limits: Limits, cx: &SinkContext) -> Result<Self, BoxError> {
        let producer = producer::connect(setup, &limits, None)?;
        Ok(DirectWriter {
            gate: Gate { setup: Arc::clone(setup), limits },
            producer: Some(producer),
            place: format!("sink `{}`, subtask {}", cx.operator, cx.subtask),
            since: cx.restored.unwrap_or_default(),
            records: 0,
            form: PhantomData,
        })
    }

    fn producer(&self) -> Result<&Producer, BoxError> {
        Ok(self.producer.as_ref().ok_or("the producer is closed")?)
    }

    fn tell(&self, fault: &Fault) -> BoxError {
        format!("{}, after checkpoint {}: {}", self.place, self.since, fault.text).into()
    }

    fn check(&self) -> Result<(), BoxError> {
        let producer = self.producer()?;
        producer.poll(Duration::ZERO);
        match producer.context().failed() {
            None => Ok(()),
            Some(failed) => Err(self.tell(&Fault::undelivered(&failed))),
        }
    }
}

impl<F: Send + Sync + 'static> SinkWriter for DirectWriter<F> {
    type Buffer = KafkaBuffer<F>;
    type Handle = ();

    async fn write(&mut self, buffer: &mut KafkaBuffer<F>) -> Result<(), BoxError> {
        self.gate.check(buffer).await?;
        let mut rest = &*buffer.bytes;
        while !rest.is_empty() {
            let (mut record, next) = split_record(rest).ok_or(Damaged)?;
            let topic = &self.gate.setup.topic;
            let sent = producer::send(self.producer()?, topic, self.records, &mut record);
            match sent.map_err(|fault| self.tell(&fault))? {
                Sent::Queued => {
                    self.records += 1;
                    rest = next;
                }
                Sent::Full => {
                    drop(record);
                    self.check()?;
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        }
        self.check()
    }

    async fn pre_commit(&mut self, checkpoint: CheckpointId) -> Result<Option<()>, BoxError> {
        let mut pause = Duration::from_millis(1);
        loop {
            self.check()?;
            if self.producer()?.in_flight_count() == 0 {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        // One more failure may have come with the last that was under way.
        self.check()?;
        self.since = checkpoint;
        self.records = 0;
        Ok(None)
    }
}

impl<F> Drop for DirectWriter<F> {
    fn drop(&mut self) {
        drop_elsewhere(self.producer.take());
    }
}

impl<F> fmt::Debug for DirectWriter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectWriter").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Of a sink without transactions.
#[derive(Clone, Copy, Debug)]
pub struct NoCommitter;

impl SinkCommitter for NoCommitter {
    type Handle = ();

    async fn commit(&mut self, _: CheckpointId, (): &()) -> Result<Committed, CommitError> {
        Ok(Committed::Already)
    }
}
