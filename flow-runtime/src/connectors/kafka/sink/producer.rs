//! The client library's producer, and what its errors mean.

use std::sync::{Mutex, PoisonError};

use rdkafka::{
    ClientContext, Message as _,
    config::{FromClientConfigAndContext, RDKafkaLogLevel},
    error::{KafkaError as ClientError, RDKafkaErrorCode as Code},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext},
};

use super::{check::Limits, encoding::Encoded, handle::Damaged, setup::Setup};
use crate::connectors::kafka::{KafkaError, client::Context, config};

pub(super) type Producer = BaseProducer<Deliveries>;

/// Receives what the client library has to tell, and remembers the first record that was not delivered.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    context: Context,
    failed: Mutex<Option<Undelivered>>,
}

/// A record that was not delivered.
#[derive(Clone, Debug)]
pub(super) struct Undelivered {
    pub(super) index: u64,
    partition: i32,
    error: ClientError,
}

impl Deliveries {
    pub(super) fn failed(&self) -> Option<Undelivered> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last thing that went wrong with a connection.
    pub(super) fn last_trouble(&self) -> Option<String> {
        self.context.last_trouble()
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.context.log(level, facility, message);
    }

    fn error(&self, error: ClientError, reason: &str) {
        self.context.error(error, reason);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        self.context.stats_raw(statistics);
    }
}

impl ProducerContext for Deliveries {
    /// The record's index.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        let Err((error, message)) = result else { return };
        let code = error.rdkafka_error_code();
        // Of a producer that is closed.
        if matches!(code, Some(Code::PurgeQueue | Code::PurgeInflight)) {
            return;
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| Undelivered {
            index: index as u64,
            partition: message.partition(),
            error: error.clone(),
        });
    }
}

pub(super) fn connect(setup: &Setup, limits: &Limits, id: Option<&str>) -> Result<Producer, KafkaError> {
    let config = setup.producer(limits.largest_batch, id);
    BaseProducer::from_config_and_context(&config, Deliveries::default()).map_err(config::refused)
}

/// What became of a record that was handed to the client library.
pub(super) enum Sent {
    Queued,
    /// The queue is full: try again a little later.
    Full,
}

pub(super) fn send(
    producer: &Producer,
    topic: &str,
    index: u64,
    record: &mut Encoded<'_>,
) -> Result<Sent, Fault> {
    let to_send = BaseRecord::<[u8], [u8], usize> {
        topic,
        partition: record.partition,
        payload: record.value,
        key: record.key,
        timestamp: record.timestamp,
        headers: record.headers.take(),
        delivery_opaque: index as usize,
    };
    match producer.send(to_send) {
        Ok(()) => Ok(Sent::Queued),
        Err((error, back)) if error.rdkafka_error_code() == Some(Code::QueueFull) => {
            record.headers = back.headers;
            Ok(Sent::Full)
        }
        Err((error, _)) => {
            // A failed delivery makes the producer refuse the rest.
            Err(match producer.context().failed() {
                Some(failed) => Fault::undelivered(&failed),
                None => Fault::of(&error, format!("record {index}: {error}")),
            })
        }
    }
}

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Try again with a new producer.
    Transient,
    /// Another producer has the same transactional id, or the broker gave the transaction up.
    Fenced,
    /// Trying again cannot help.
    Permanent,
}

/// A failure, and what to do about it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) class: Class,
    pub(super) text: String,
}

impl Fault {
    pub(super) fn permanent(text: impl ToString) -> Self {
        Fault { class: Class::Permanent, text: text.to_string() }
    }

    pub(super) fn transient(text: impl ToString) -> Self {
        Fault { class: Class::Transient, text: text.to_string() }
    }

    pub(super) fn of(error: &ClientError, text: String) -> Self {
        let (mut code, mut text) = (error.rdkafka_error_code(), text);
        if let ClientError::Transaction(transaction) = error {
            code = Some(transaction.code());
            text = format!("{text}: {}", transaction.string());
        }
        Fault { class: code.map_or(Class::Transient, class), text }
    }

    pub(super) fn undelivered(failed: &Undelivered) -> Self {
        let mut fault = Fault::of(&failed.error, String::new());
        let partition =
            if failed.partition < 0 { String::new() } else { format!(" (partition {})", failed.partition) };
        let reason =
            failed.error.rdkafka_error_code().map_or(failed.error.to_string(), |code| code.to_string());
        fault.text = format!("record {}{partition}: {reason}", failed.index);
        fault
    }
}

impl From<Damaged> for Fault {
    fn from(damaged: Damaged) -> Self {
        Fault::permanent(damaged)
    }
}

impl From<KafkaError> for Fault {
    fn from(error: KafkaError) -> Self {
        match error {
            KafkaError::Unreachable { .. } | KafkaError::Failed { .. } => Fault::transient(error),
            _ => Fault::permanent(error),
        }
    }
}

fn class(code: Code) -> Class {
    match code {
        Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch => Class::Fenced,
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::TransactionalIdAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication
        | Code::UnsupportedSASLMechanism
        | Code::SecurityDisabled
        | Code::UnknownTopic
        | Code::UnknownPartition
        | Code::UnknownTopicOrPartition
        | Code::InvalidTopic
        | Code::InvalidTransactionTimeout
        | Code::MessageSizeTooLarge
        | Code::MessageBatchTooLarge
        | Code::InvalidMessageSize
        | Code::InvalidRecord
        | Code::InvalidTimestamp
        | Code::InvalidRequiredAcks
        | Code::OffsetMetadataTooLarge
        | Code::InvalidGroupId
        | Code::PolicyViolation
        | Code::UnsupportedForMessageFormat
        | Code::UnsupportedCompressionType
        | Code::UnsupportedVersion
        | Code::UnsupportedFeature
        | Code::InvalidArgument
        | Code::NotConfigured => Class::Permanent,
        _ => Class::Transient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_a_class() {
        let class = |code| Fault::of(&ClientError::MessageProduction(code), String::new()).class;
        assert_eq!(class(Code::Fenced), Class::Fenced);
        assert_eq!(class(Code::MessageSizeTooLarge), Class::Permanent);
        assert_eq!(class(Code::OperationTimedOut), Class::Transient);
        assert_eq!(class(Code::ConcurrentTransactions), Class::Transient);
    }
}
