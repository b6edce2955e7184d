//! What can go wrong with Kafka, in words that name the topic and what to do.

use std::time::Duration;

use rdkafka::error::RDKafkaErrorCode as Code;

/// Why a Kafka source could not be read, or a Kafka sink not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaError {
    /// No broker was named.
    #[error("no kafka broker given: name some with `.brokers(\"host:9092\")`")]
    NoBrokers,
    /// No topic was named.
    #[error("no kafka topic given")]
    NoTopic,
    /// [`Start::Committed`](super::Start::Committed) without a group.
    #[error("`Start::Committed` begins where a consumer group stopped: name it with `.group(\"..\")`")]
    NoGroup,
    /// A property that is unknown to librdkafka, has a wrong value, or belongs to the source itself.
    #[error("kafka property `{key}`: {reason}")]
    Property {
        /// The property's name. Its value may be a secret and is not told.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No broker answered in time.
    #[error(
        "no kafka broker of `{brokers}` answered within {waited:?} ({}): check `.brokers(..)` and the network",
        .last.as_deref().unwrap_or("no reply")
    )]
    Unreachable {
        /// The addresses that were tried.
        brokers: String,
        /// How long.
        waited: Duration,
        /// The last thing that the client library reported.
        last: Option<String>,
    },
    /// The topic does not exist.
    #[error("kafka topic `{topic}` does not exist{}", similar_topics(.similar))]
    UnknownTopic {
        /// The topic.
        topic: String,
        /// Topics with a similar name.
        similar: Vec<String>,
    },
    /// The cluster does not let us in, or not at this topic or group.
    #[error(
        "kafka refuses access to {what}: {reason}: check the credentials and the access rules of the cluster"
    )]
    Refused {
        /// The topic, the group or the cluster.
        what: String,
        /// What the broker said.
        reason: String,
    },
    /// The records that should be read next are not there any more, or not there yet.
    #[error(
        "kafka topic `{topic}`, partition {partition}: offset {wanted} is wanted next, but the broker holds {}: {}",
        held(*.low, *.high),
        out_of_range_remedy(*.wanted, *.low)
    )]
    OutOfRange {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset that the split asks for.
        wanted: i64,
        /// The first offset that the broker has.
        low: i64,
        /// The offset after the last one that the broker has.
        high: i64,
    },
    /// A record whose value the format cannot read.
    #[error(
        "kafka topic `{topic}`, partition {partition}, offset {offset}: {cause}; `.skip_invalid()` would pass over such records"
    )]
    InvalidRecord {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset.
        offset: i64,
        /// What the format said.
        cause: crate::error::BoxError,
    },
    /// Anything else, in the client library's words.
    #[error("{what}: {reason}")]
    Failed {
        /// What was attempted, and on which topic.
        what: String,
        /// What the client library said.
        reason: String,
    },
}

impl KafkaError {
    pub(super) fn failed(what: impl Into<String>, reason: impl ToString) -> Self {
        KafkaError::Failed { what: what.into(), reason: reason.to_string() }
    }
}

fn similar_topics(similar: &[String]) -> String {
    match similar {
        [] => ": create it first, the job does not".to_owned(),
        names => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("; a similar name exists: {}", names.join(", "))
        }
    }
}

fn held(low: i64, high: i64) -> String {
    if low == high {
        format!("no records (the next one gets {high})")
    } else {
        format!("{low} to {}", high - 1)
    }
}

fn out_of_range_remedy(wanted: i64, low: i64) -> &'static str {
    if wanted < low {
        "its retention deleted them before they were read; to go on without them, start without the checkpoint and \
         with `Start::Earliest`, and give the topic a longer retention"
    } else {
        "the topic was truncated or made anew since; to read it from its beginning, start without the checkpoint"
    }
}

/// What an error code of the client library means for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The library goes on by itself: wait.
    Transient,
    /// Waiting cannot help.
    UnknownTopic,
    /// Waiting cannot help.
    Refused,
    /// No TLS connection: a wrong configuration at the start, but later perhaps only a broker that goes down.
    Handshake,
    /// The position is not in the log; the code does not say which partition's.
    OutOfRange,
    /// The group's coordinator says no; we do not take part in groups.
    Group,
    /// Everything else ends the reader: an unknown error may mean lost records.
    Fatal,
}

pub(super) fn kind(code: Code) -> Kind {
    match code {
        Code::BrokerTransportFailure
        | Code::AllBrokersDown
        | Code::Resolve
        | Code::OperationTimedOut
        | Code::TimedOutQueue
        | Code::MessageTimedOut
        | Code::BrokerDestroy
        | Code::NodeUpdate
        | Code::Retry
        | Code::WaitCache
        | Code::InProgress
        | Code::WaitingForCoordinator
        | Code::Interrupted
        | Code::LeaderNotAvailable
        | Code::NotLeaderForPartition
        | Code::BrokerNotAvailable
        | Code::ReplicaNotAvailable
        | Code::RequestTimedOut
        | Code::NetworkException
        | Code::KafkaStorageError
        | Code::FencedLeaderEpoch
        | Code::UnknownLeaderEpoch
        | Code::OffsetNotAvailable
        | Code::PreferredLeaderNotAvailable
        | Code::EligibleLeadersNotAvailable
        | Code::ReassignmentInProgress
        | Code::FetchSessionIdNotFound
        | Code::InvalidFetchSessionEpoch
        | Code::ListenerNotFound
        | Code::StaleBrokerEpoch
        | Code::UnknownBroker
        | Code::DestroyBroker
        | Code::RebootstrapRequired
        | Code::ThrottlingQuotaExceeded => Kind::Transient,
        Code::UnknownTopicOrPartition
        | Code::UnknownTopic
        | Code::UnknownPartition
        | Code::UnknownTopicId
        | Code::InvalidTopic => Kind::UnknownTopic,
        Code::TopicAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication
        | Code::UnsupportedSASLMechanism => Kind::Refused,
        Code::SSL => Kind::Handshake,
        Code::AutoOffsetReset | Code::OffsetOutOfRange | Code::LogTruncation => Kind::OutOfRange,
        Code::GroupAuthorizationFailed
        | Code::CoordinatorLoadInProgress
        | Code::CoordinatorNotAvailable
        | Code::NotCoordinator
        // The end of a transaction is on its way.
        | Code::UnstableOffsetCommit
        | Code::InvalidGroupId => Kind::Group,
        _ => Kind::Fatal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_names_what_is_wanted_and_what_is_there() {
        let error = |wanted, low, high| {
            KafkaError::OutOfRange { topic: "events".into(), partition: 3, wanted, low, high }.to_string()
        };
        let deleted = error(7, 100, 200);
        assert!(deleted.starts_with(
            "kafka topic `events`, partition 3: offset 7 is wanted next, but the broker holds 100 to 199: its retention"
        ));
        assert!(error(7, 0, 0).contains("holds no records (the next one gets 0): the topic was truncated"));
    }

    #[test]
    fn an_unknown_topic_suggests_others() {
        let error = KafkaError::UnknownTopic { topic: "evnts".into(), similar: vec!["events".into()] };
        assert_eq!(error.to_string(), "kafka topic `evnts` does not exist; a similar name exists: `events`");
    }
}
