//! Fetched records, copied once into one buffer.

use std::{
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};

use super::{Format, KafkaError, Message, message::put_header, split::split_id};
use crate::{
    error::BoxError,
    source::{Batch, Runs},
};

/// Ends a batch; large enough that a batch's fixed costs vanish, small enough that it stays in the cache.
const MAX_BYTES: usize = 256 * 1024;
const MAX_RECORDS: usize = 8192;
/// One huge record should not hold its memory for ever.
const KEPT_CAPACITY: usize = 8 * 1024 * 1024;

/// Records of one or more partitions. Items borrow from it.
pub struct KafkaBatch<F> {
    format: Arc<F>,
    invalid: Arc<Invalid>,
    data: Vec<u8>,
    payloads: Vec<Payload>,
    /// As many as `payloads` if the format wants whole messages, otherwise none.
    extras: Vec<Extra>,
    runs: Vec<Run>,
    /// The next record to be iterated, and the run that it is in.
    next: usize,
    run: usize,
    /// The run of the record that was given last, for event time.
    given: Arc<AtomicUsize>,
    /// The records that iteration passed over, ascending.
    skipped: Vec<usize>,
    failure: Option<BoxError>,
}

/// Where a value lies in the data. A tombstone has none, which is not the same as an empty one.
struct Payload {
    start: usize,
    end: usize,
    tombstone: bool,
}

struct Extra {
    timestamp: Option<i64>,
    key: Option<Range<usize>>,
    headers: Range<usize>,
}

/// Records with consecutive offsets: where they came from is kept once for all of them.
struct Run {
    topic: Arc<str>,
    partition: i32,
    /// The offset of the first record, and its index in the batch.
    offset: i64,
    start: usize,
    /// The index after the last record.
    end: usize,
}

impl<F: Format> KafkaBatch<F> {
    pub(super) fn new(format: Arc<F>, invalid: Arc<Invalid>) -> Self {
        KafkaBatch {
            format,
            invalid,
            data: Vec::new(),
            payloads: Vec::new(),
            extras: Vec::new(),
            runs: Vec::new(),
            next: 0,
            run: 0,
            given: Arc::default(),
            skipped: Vec::new(),
            failure: None,
        }
    }

    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.data.shrink_to(KEPT_CAPACITY);
        self.payloads.clear();
        self.extras.clear();
        self.runs.clear();
        self.next = 0;
        self.run = 0;
        self.skipped.clear();
        self.failure = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.payloads.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.payloads.len() < MAX_RECORDS && self.data.len() < MAX_BYTES
    }

    #[inline]
    pub(super) fn push(&mut self, topic: &Arc<str>, record: &BorrowedMessage<'_>) {
        let (partition, offset) = (record.partition(), record.offset());
        let index = self.payloads.len();
        match self.runs.last_mut() {
            Some(run)
                if run.partition == partition
                    && run.offset + (run.end - run.start) as i64 == offset
                    && Arc::ptr_eq(&run.topic, topic) =>
            {
                run.end += 1;
            }
            _ => self.runs.push(Run {
                topic: Arc::clone(topic),
                partition,
                offset,
                start: index,
                end: index + 1,
            }),
        }
        if F::WHOLE {
            self.push_extra(record);
        }
        let start = self.data.len();
        let payload = record.payload();
        self.data.extend_from_slice(payload.unwrap_or_default());
        self.payloads.push(Payload { start, end: self.data.len(), tombstone: payload.is_none() });
    }

    fn push_extra(&mut self, record: &BorrowedMessage<'_>) {
        let start = self.data.len();
        let key = record.key().map(|key| {
            self.data.extend_from_slice(key);
            start..self.data.len()
        });
        let start = self.data.len();
        if let Some(headers) = record.headers() {
            for header in headers.iter() {
                put_header(&mut self.data, header.key, header.value);
            }
        }
        let headers = start..self.data.len();
        self.extras.push(Extra { timestamp: record.timestamp().to_millis(), key, headers });
    }
}

impl<F: Format> Batch for KafkaBatch<F> {
    type Item<'a> = F::Item<'a>;

    fn records(&mut self) -> impl Iterator<Item = F::Item<'_>> {
        Records {
            format: &*self.format,
            invalid: &self.invalid,
            data: &self.data,
            payloads: &self.payloads,
            extras: &self.extras,
            runs: &self.runs,
            next: &mut self.next,
            run: &mut self.run,
            given: &self.given,
            skipped: &mut self.skipped,
            failure: &mut self.failure,
        }
    }

    fn error(&mut self) -> Option<BoxError> {
        self.failure.take()
    }

    fn runs(&self) -> Option<Runs> {
        self.given.store(self.run, Ordering::Relaxed);
        let splits = self.runs.iter().map(|run| split_id(&run.topic, run.partition)).collect();
        Some(Runs { splits, current: Arc::clone(&self.given) })
    }

    fn describe(&self, index: u64) -> Option<String> {
        let mut index = usize::try_from(index).ok()?;
        for skipped in &self.skipped {
            if *skipped <= index {
                index += 1;
            }
        }
        let run = self.runs.iter().find(|run| (run.start..run.end).contains(&index))?;
        let offset = run.offset + (index - run.start) as i64;
        Some(format!("offset {offset} of partition {} of topic `{}`", run.partition, run.topic))
    }
}

impl<F> fmt::Debug for KafkaBatch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaBatch")
            .field("records", &self.payloads.len())
            .field("bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

struct Records<'a, F> {
    format: &'a F,
    invalid: &'a Invalid,
    data: &'a [u8],
    payloads: &'a [Payload],
    extras: &'a [Extra],
    runs: &'a [Run],
    next: &'a mut usize,
    run: &'a mut usize,
    given: &'a AtomicUsize,
    skipped: &'a mut Vec<usize>,
    failure: &'a mut Option<BoxError>,
}

impl<'a, F: Format> Iterator for Records<'a, F> {
    type Item = F::Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<F::Item<'a>> {
        loop {
            let index = *self.next;
            let payload = self.payloads.get(index)?;
            let mut run = self.runs.get(*self.run)?;
            if index == run.end {
                *self.run += 1;
                self.given.store(*self.run, Ordering::Relaxed);
                run = self.runs.get(*self.run)?;
            }
            let offset = run.offset + (index - run.start) as i64;
            let value = (!payload.tombstone).then(|| &self.data[payload.start..payload.end]);
            let mut message = Message::new(&run.topic, run.partition, offset, value);
            if F::WHOLE {
                let extra = self.extras.get(index)?;
                let key = extra.key.clone().map(|key| &self.data[key]);
                message = message.with(extra.timestamp, key, &self.data[extra.headers.clone()]);
            }
            match self.format.read(message) {
                Ok(Some(item)) => {
                    *self.next += 1;
                    return Some(item);
                }
                Ok(None) => self.skipped.push(index),
                Err(cause) => {
                    if let Err(error) = self.invalid.met(&message, cause) {
                        // The position stays, so that whoever asks again gets the same error.
                        *self.failure = Some(error.into());
                        return None;
                    }
                    self.skipped.push(index);
                }
            }
            *self.next += 1;
        }
    }
}

/// What to do with records that the format cannot read, and how many there were.
#[derive(Debug, Default)]
pub(super) struct Invalid {
    skip: bool,
    count: AtomicU64,
    logged: Mutex<Option<Instant>>,
}

impl Invalid {
    pub(super) fn new(skip: bool) -> Self {
        Invalid { skip, ..Invalid::default() }
    }

    /// Passes over the record, or says why the job cannot go on.
    #[cold]
    fn met(&self, message: &Message<'_>, cause: BoxError) -> Result<(), KafkaError> {
        let error = KafkaError::InvalidRecord {
            topic: message.topic.to_owned(),
            partition: message.partition,
            offset: message.offset,
            cause,
        };
        if !self.skip {
            return Err(error);
        }
        let skipped = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        // A topic full of them must not fill the disk with its log.
        if logged.is_none_or(|at| at.elapsed() >= Duration::from_secs(10)) {
            *logged = Some(Instant::now());
            tracing::warn!(skipped, "skipped an invalid record: {error}");
        }
        Ok(())
    }
}
