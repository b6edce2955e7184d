//! What the worker fills.

use std::{fmt, sync::Arc};

use super::{Draft, Form};
use crate::{
    connectors::text::BATCH_BYTES,
    error::BoxError,
    sink::{SinkBuffer, Write},
};

/// Encoded records on their way to Kafka.
pub struct KafkaBuffer<F> {
    form: Arc<F>,
    pub(super) bytes: Vec<u8>,
    pub(super) records: usize,
    /// Of the largest record, encoded.
    pub(super) largest: usize,
    /// Of those that records name; -1 if none does.
    pub(super) highest_partition: i32,
}

impl<F> KafkaBuffer<F> {
    pub(super) fn new(form: Arc<F>) -> Self {
        KafkaBuffer { form, bytes: Vec::new(), records: 0, largest: 0, highest_partition: -1 }
    }
}

impl<F: Send + Sync + 'static> SinkBuffer for KafkaBuffer<F> {
    fn len(&self) -> usize {
        self.records
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        // One huge record should not hold its memory for ever.
        self.bytes.shrink_to(4 * BATCH_BYTES);
        self.records = 0;
        self.largest = 0;
        self.highest_partition = -1;
    }
}

impl<T, F: Form<T>> Write<T> for KafkaBuffer<F> {
    #[inline]
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        let start = self.bytes.len();
        let mut draft = Draft::new(&mut self.bytes, &mut self.highest_partition);
        if let Err(error) = self.form.describe(&record, &mut draft) {
            self.bytes.truncate(start);
            return Err(error);
        }
        draft.finish();
        self.largest = self.largest.max(self.bytes.len() - start);
        self.records += 1;
        Ok(())
    }
}

impl<F> fmt::Debug for KafkaBuffer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaBuffer")
            .field("records", &self.records)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};
    use crate::connectors::kafka::sink::encoding::split_record;

    type Shown = (Option<String>, Option<String>);

    fn shown<F>(buffer: &KafkaBuffer<F>) -> Vec<Shown> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (mut rest, mut records) = (&*buffer.bytes, Vec::new());
        while !rest.is_empty() {
            let (record, next) = split_record(rest).unwrap();
            records.push((record.key.map(text), record.value.map(text)));
            rest = next;
        }
        records
    }

    fn some(key: &str, value: &str) -> Shown {
        (Some(key.into()), Some(value.into()))
    }

    #[test]
    fn values_pairs_and_records() {
        let mut buffer = KafkaBuffer::new(Arc::new(Values));
        buffer.write("value").unwrap();
        buffer.write(String::from("owned")).unwrap();
        buffer.write(("key", b"bytes".as_slice())).unwrap();
        buffer.write((7u64, 8i64)).unwrap();
        buffer.write((String::from("gone"), None::<String>)).unwrap();
        buffer.write(Record::new("v").key("k").partition(5)).unwrap();
        buffer.write(Record::tombstone().key("gone")).unwrap();
        let gone: Shown = (Some("gone".into()), None);
        assert_eq!(
            shown(&buffer),
            [
                (None, Some("value".into())),
                (None, Some("owned".into())),
                some("key", "bytes"),
                some("7", "8"),
                gone.clone(),
                some("k", "v"),
                gone,
            ]
        );
        assert_eq!((buffer.len(), buffer.highest_partition), (7, 5));
        buffer.clear();
        assert_eq!((buffer.len(), buffer.largest, buffer.highest_partition), (0, 0, -1));
    }

    #[derive(serde::Serialize)]
    struct Order<'a> {
        id: u64,
        item: &'a str,
    }

    #[test]
    fn json_with_a_key() {
        let sink = to("orders").json().key(|order: &Order<'_>| order.id).partition(|_: &Order<'_>| 2);
        let mut buffer = KafkaBuffer::new(Arc::clone(&sink.form));
        let item = String::from("nut");
        buffer.write(Order { id: 3, item: &item }).unwrap();
        assert_eq!(shown(&buffer), [some("3", r#"{"id":3,"item":"nut"}"#)]);
        assert_eq!(buffer.highest_partition, 2);

        let mut buffer = KafkaBuffer::new(Arc::clone(&to("orders").json_values().form));
        buffer.write(("k", Order { id: 1, item: "x" })).unwrap();
        assert_eq!(shown(&buffer), [some("k", r#"{"id":1,"item":"x"}"#)]);
    }

    #[test]
    fn a_failed_record_leaves_nothing() {
        let mut buffer = KafkaBuffer::new(Arc::new(Values));
        buffer.write("first").unwrap();
        let unkeyed = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(buffer.write(("key", AsJson(&unkeyed))).is_err());
        assert!(buffer.write(Record::new("x").header("h", AsJson(&unkeyed))).is_err());
        assert!(buffer.write(Record::new("x").partition(-2)).is_err());
        assert_eq!(shown(&buffer), [(None, Some("first".into()))]);
    }
}
