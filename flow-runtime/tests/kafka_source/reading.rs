//! Drives a reader as the engine does.

use std::{collections::HashMap, time::Duration};

use flow_runtime::{
    connectors::kafka::{Format, KafkaSource, KafkaSplit},
    error::BoxError,
    source::{Batch, Fetched, Progress, Source, SourceContext, SourceReader},
};
use tokio::time::timeout;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A reader with its batch, and how far it has read.
pub(crate) struct Reading<S: Source> {
    pub(crate) reader: S::Reader,
    pub(crate) fetched: Fetched<S::Batch, S::Split>,
    pub(crate) positions: HashMap<i32, KafkaSplit>,
}

impl<F: Format, E: Send + Sync + 'static> Reading<KafkaSource<F, E>> {
    pub(crate) async fn open(source: &KafkaSource<F, E>, splits: Vec<KafkaSplit>) -> Result<Self, BoxError> {
        let positions = splits.iter().map(|split| (split.partition(), split.clone())).collect();
        let reader = source.open(SourceContext::new("test", "source", 0, 1), splits).await?;
        let fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
        Ok(Reading { reader, fetched, positions })
    }

    /// Hands each record of the next batch to `each`.
    pub(crate) async fn step(&mut self, mut each: impl FnMut(F::Item<'_>)) -> Result<Progress, BoxError> {
        self.fetched.advanced.clear();
        let progress = timeout(PATIENCE, self.reader.fetch(&mut self.fetched)).await??;
        for record in self.fetched.batch.records() {
            each(record);
        }
        if let Some(error) = self.fetched.batch.error() {
            return Err(error);
        }
        for split in self.fetched.advanced.drain(..) {
            self.positions.insert(split.partition(), split);
        }
        Ok(progress)
    }

    pub(crate) async fn rest(&mut self, mut each: impl FnMut(F::Item<'_>)) -> Result<(), BoxError> {
        while self.step(&mut each).await? == Progress::More {}
        Ok(())
    }
}

pub(crate) async fn read_all<F: Format, E: Send + Sync + 'static>(
    source: &KafkaSource<F, E>,
    each: impl FnMut(F::Item<'_>),
) -> Result<(), BoxError> {
    let splits = source.discover(false).await?;
    Reading::open(source, splits).await?.rest(each).await
}
