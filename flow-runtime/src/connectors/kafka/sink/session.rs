//! A transactional producer, and the marker as it stood when it was the only one.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::ConsumerGroupMetadata,
    error::{KafkaError as ClientError, RDKafkaErrorCode as Code},
    producer::Producer as _,
};

use super::{
    Staged,
    check::{Limits, too_long},
    marker::Mark,
    producer::{self, Fault, Producer, Sent},
    setup::Setup,
};
use crate::{
    connectors::kafka::client::Admin,
    failpoint::{Point, reach},
};

/// How long the brokers may take to answer a step of a transaction.
const STEP: Duration = Duration::from_secs(30);

/// The one producer of a subtask's transactional id. Its calls block.
pub(super) struct Session {
    setup: Arc<Setup>,
    producer: Producer,
    group: ConsumerGroupMetadata,
    mark: Option<Mark>,
}

/// Reads a marker without fencing anybody.
pub(super) fn read_mark(setup: &Setup, id: &str) -> Result<Option<Mark>, Fault> {
    let admin = Admin::connect(&setup.consumer(Some(id.to_owned())))?;
    Ok(mark(&admin, &setup.topic)?)
}

fn mark(admin: &Admin, topic: &str) -> Result<Option<Mark>, crate::connectors::kafka::KafkaError> {
    Ok(admin.committed_with_metadata(topic, 0)?.map(|(offset, metadata)| Mark::read(offset, &metadata)))
}

impl Session {
    /// Fences whoever had this id, settles the transaction that they may have left, and reads the marker.
    pub(super) fn open(setup: &Arc<Setup>, limits: &Limits, id: &str) -> Result<Self, Fault> {
        let producer = producer::connect(setup, limits, Some(id))?;
        let deadline = Instant::now() + setup.connect_timeout;
        while let Err(error) = producer.init_transactions(Duration::from_secs(2)) {
            producer.poll(Duration::ZERO);
            if let ClientError::Transaction(transaction) = &error
                && transaction.is_retriable()
                && Instant::now() < deadline
            {
                continue;
            }
            if error.rdkafka_error_code() == Some(Code::InvalidTransactionTimeout)
                || matches!(&error, ClientError::Transaction(e) if e.code() == Code::InvalidTransactionTimeout)
            {
                return Err(Fault::permanent(too_long(setup, None)));
            }
            let trouble = producer.context().last_trouble();
            let trouble = trouble.map_or_else(String::new, |trouble| format!(" ({trouble})"));
            return Err(Fault::of(&error, format!("cannot become the producer `{id}`{trouble}")));
        }
        let admin = Admin::connect(&setup.consumer(Some(id.to_owned())))?;
        let mark = mark(&admin, &setup.topic)?;
        let group = admin.group_metadata()?;
        Ok(Session { setup: Arc::clone(setup), producer, group, mark })
    }

    /// Where the marker stands: no other producer can have moved it.
    pub(super) fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    /// Writes the records and moves the marker, in one transaction. After an error the session is of no use: what
    /// became of the transaction is known to the next one.
    pub(super) fn write(&mut self, staged: Option<&Staged>, next: Mark) -> Result<(), Fault> {
        let written = self.transaction(staged, next);
        match written {
            Ok(()) => {
                self.mark = Some(next);
                Ok(())
            }
            // The reason why a transaction must be aborted is, mostly, a record.
            Err(fault) => Err(match self.producer.context().failed() {
                Some(failed) => Fault::undelivered(&failed),
                None => fault,
            }),
        }
    }

    fn transaction(&self, staged: Option<&Staged>, next: Mark) -> Result<(), Fault> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: ClientError| Fault::of(&error, what)
        };
        let (producer, topic) = (&self.producer, &*self.setup.topic);
        producer.poll(Duration::ZERO);
        producer.begin_transaction().map_err(failed("cannot begin a transaction"))?;
        reach(Point::KafkaBegun);
        if let Some(staged) = staged {
            let deadline = Instant::now() + self.setup.transaction_timeout;
            staged.each(|index, record| {
                while let Sent::Full = producer::send(producer, topic, index, record)? {
                    if Instant::now() > deadline {
                        return Err(Fault::transient("the brokers do not take the records"));
                    }
                    producer.poll(Duration::from_millis(10));
                }
                Ok(())
            })?;
        }
        reach(Point::KafkaProduced);
        let mut marker = TopicPartitionList::with_capacity(1);
        let mut element = marker.add_partition(topic, 0);
        element.set_metadata(next.metadata());
        let offset = i64::try_from(next.epoch).map_err(Fault::permanent)?;
        element.set_offset(Offset::Offset(offset)).map_err(failed("cannot set the marker"))?;
        producer
            .send_offsets_to_transaction(&marker, &self.group, STEP)
            .map_err(failed("cannot move the marker"))?;
        reach(Point::KafkaMarked);
        // Serves what is told of the records, which the commit itself does not.
        producer.flush(self.setup.transaction_timeout).map_err(failed("cannot write the records"))?;
        reach(Point::KafkaFlushed);
        producer.commit_transaction(STEP).map_err(failed("cannot commit the transaction"))?;
        reach(Point::KafkaCommitted);
        Ok(())
    }
}
