//! What is asked of the cluster before anything is written.

use std::time::Duration;

use futures_util::FutureExt;
use rdkafka::{
    admin::{AdminClient, AdminOptions, ConfigResource, ResourceSpecifier},
    client::DefaultClientContext,
    config::FromClientConfig,
};

use super::setup::Setup;
use crate::{
    connectors::kafka::{
        KafkaError,
        client::{Admin, blocking, drop_elsewhere},
        config,
    },
    error::BoxError,
};

/// What the topic takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) partitions: i32,
    /// In bytes.
    pub(super) largest_batch: usize,
}

/// What a batch and its only record need beside key, value and headers.
const OVERHEAD: usize = 512;
/// What brokers take by default.
const LARGEST_BATCH: usize = 1_048_588;

impl Limits {
    /// Of an encoded record.
    pub(super) fn largest_record(&self) -> usize {
        self.largest_batch.saturating_sub(OVERHEAD)
    }
}

/// Asks whether the brokers are there, the topic exists, and the transaction timeout is not too long for them.
pub(super) async fn check(setup: &Setup, transactions: bool) -> Result<Limits, BoxError> {
    setup.check()?;
    let asking = setup.clone();
    let (partitions, cluster, broker) = blocking(move || {
        let admin = Admin::connect(&asking.consumer(None))?;
        let partitions = admin.partitions(&asking.topic)?;
        let (cluster, broker) = admin.cluster(&asking.topic);
        Ok((partitions, cluster, broker))
    })
    .await?;
    if transactions && cluster.is_some_and(|id| id.starts_with("mockCluster")) {
        return Err("the mock broker takes transactions and ignores them, so nothing is exactly once on it: choose `.at_least_once()`, or a real broker".into());
    }
    let told = describe(setup, broker).await.unwrap_or_else(|error| {
        // Not everybody may ask. The broker itself refuses what is too long or too large.
        tracing::debug!("the brokers do not tell their configuration: {error}");
        Vec::new()
    });
    let number = |name: &str| {
        let entry = told.iter().find_map(|resource| resource.get(name));
        entry.and_then(|entry| entry.value.as_deref()?.parse::<u64>().ok())
    };
    if let Some(most) = number("transaction.max.timeout.ms").filter(|_| transactions)
        && setup.transaction_timeout > Duration::from_millis(most)
    {
        return Err(too_long(setup, Some(Duration::from_millis(most))).into());
    }
    let largest_batch = number("max.message.bytes").and_then(|bytes| usize::try_from(bytes).ok());
    let by_hand = setup.properties.get("message.max.bytes").and_then(|bytes| bytes.parse().ok());
    Ok(Limits {
        partitions: i32::try_from(partitions.len())?,
        // What the client library can do.
        largest_batch: by_hand.or(largest_batch).unwrap_or(LARGEST_BATCH).clamp(1000, 1_000_000_000),
    })
}

pub(super) fn too_long(setup: &Setup, most: Option<Duration>) -> String {
    let most = most.map_or_else(String::new, |most| format!(", which is {most:?}"));
    format!(
        "the transaction timeout of {:?} is longer than the brokers of `{}` allow: shorten it with `.transaction_timeout(..)`, or raise their `transaction.max.timeout.ms`{most}",
        setup.transaction_timeout, setup.brokers
    )
}

async fn describe(setup: &Setup, broker: Option<i32>) -> Result<Vec<ConfigResource>, BoxError> {
    let admin = AdminClient::<DefaultClientContext>::from_config(&setup.admin()).map_err(config::refused)?;
    let topic = ResourceSpecifier::Topic(&setup.topic);
    let broker = broker.map(ResourceSpecifier::Broker);
    let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(10)));
    let mut resources = Vec::new();
    // One by one, since a right may be missing for one of them only.
    for resource in [Some(topic), broker].into_iter().flatten() {
        match admin.describe_configs([&resource], &options).boxed().await {
            Ok(answers) => resources.extend(answers.into_iter().flatten()),
            Err(error) => tracing::debug!("{resource:?} is not described: {error}"),
        }
    }
    drop_elsewhere(admin);
    Ok(resources)
}

/// How many partitions there are by now.
pub(super) async fn partitions(setup: &Setup) -> Result<i32, BoxError> {
    let setup = setup.clone();
    let partitions =
        blocking(move || Admin::connect(&setup.consumer(None))?.partitions(&setup.topic)).await?;
    Ok(i32::try_from(partitions.len())?)
}

pub(super) fn unknown_partition(setup: &Setup, partition: i32, partitions: i32) -> KafkaError {
    KafkaError::failed(
        format!("kafka topic `{}`", setup.topic),
        format!("a record wants partition {partition}, but the topic has {partitions}, from 0"),
    )
}
