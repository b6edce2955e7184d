//! The writing half of a sink that is exactly once: it stages.

use std::{fmt, marker::PhantomData, sync::Arc};

use super::{
    KafkaBuffer, Staged,
    check::{Limits, partitions, unknown_partition},
    encoding::split_record,
    handle::Staging,
    setup::Setup,
};
use crate::{checkpoint::CheckpointId, error::BoxError, sink::SinkWriter};

/// Stages the records of an epoch in memory, compressed; the cluster hears nothing of them before the checkpoint is
/// complete.
pub struct StagingWriter<F> {
    gate: Gate,
    staging: Staging,
    form: PhantomData<fn(F)>,
}

impl<F> StagingWriter<F> {
    pub(super) fn new(gate: Gate, attempt: u64, previous: u64) -> Result<Self, BoxError> {
        Ok(StagingWriter { gate, staging: Staging::new(attempt, previous)?, form: PhantomData })
    }
}

impl<F: Send + Sync + 'static> SinkWriter for StagingWriter<F> {
    type Buffer = KafkaBuffer<F>;
    type Handle = Staged;

    async fn write(&mut self, buffer: &mut KafkaBuffer<F>) -> Result<(), BoxError> {
        if buffer.records == 0 {
            return Ok(());
        }
        self.gate.check(buffer).await?;
        self.staging.add(&buffer.bytes, buffer.records)
    }

    async fn pre_commit(&mut self, checkpoint: CheckpointId) -> Result<Option<Staged>, BoxError> {
        Ok(self.staging.take(checkpoint.0))
    }
}

impl<F> fmt::Debug for StagingWriter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StagingWriter")
    }
}

/// Stops records that the brokers would refuse, while they can still be told from others: once they are in a checkpoint
/// they would be refused again and again.
pub(super) struct Gate {
    pub(super) setup: Arc<Setup>,
    pub(super) limits: Limits,
}

impl Gate {
    pub(super) async fn check<F>(&mut self, buffer: &KafkaBuffer<F>) -> Result<(), BoxError> {
        if buffer.largest > self.limits.largest_record() {
            return Err(self.too_large(buffer).into());
        }
        let partition = buffer.highest_partition;
        if partition >= self.limits.partitions {
            // There may be more of them by now.
            self.limits.partitions = partitions(&self.setup).await?;
            if partition >= self.limits.partitions {
                return Err(unknown_partition(&self.setup, partition, self.limits.partitions).into());
            }
        }
        Ok(())
    }

    #[cold]
    fn too_large<F>(&self, buffer: &KafkaBuffer<F>) -> String {
        let (mut rest, mut key) = (&*buffer.bytes, None);
        while let Some((record, next)) = split_record(rest) {
            if rest.len() - next.len() == buffer.largest {
                key = record.key;
                break;
            }
            rest = next;
        }
        let key = match key.map(String::from_utf8_lossy) {
            Some(key) => format!("with key `{}`", key.chars().take(100).collect::<String>()),
            None => "without a key".to_owned(),
        };
        format!(
            "a record {key} has {} bytes, but kafka topic `{}` takes {} at most: raise its `max.message.bytes`",
            buffer.largest,
            self.setup.topic,
            self.limits.largest_record()
        )
    }
}
