//! What the worker fills: rows already in the form in which they are staged.

use std::marker::PhantomData;

use serde::Serialize;

use super::{encode::encode_row, handle::Staged, table::COLUMN_ROWS, url::Backend, value::varint};
use crate::{
    error::BoxError,
    sink::{SinkBuffer, Write},
};

/// A buffer is handed over at this many rows: a full batch or a few.
const FULL_ROWS: usize = COLUMN_ROWS;
/// Or at this many bytes.
const FULL_BYTES: usize = 256 * 1024;

/// How the values of a row get their columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// They are parameters of a statement, as many as it takes where that is known.
    Unnamed(Option<usize>),
    /// The fields of the first record.
    Learned(Vec<String>),
    /// What `.columns` says.
    Fixed(Vec<String>),
}

impl Columns {
    pub(super) fn name(&self, index: usize) -> Option<&str> {
        match self {
            Columns::Unnamed(_) => None,
            Columns::Learned(names) | Columns::Fixed(names) => names.get(index).map(String::as_str),
        }
    }
}

/// What all buffers of the SQL sinks have in common.
pub trait StagingBuffer: SinkBuffer {
    /// Appends the rows to those of the epoch.
    #[doc(hidden)]
    fn stage(&self, staged: &mut Staged) -> Result<(), BoxError>;
}

/// Rows on their way to a table or a statement. It takes every record that serde can write and that is a struct, or a
/// tuple whose columns are named.
#[derive(Debug)]
pub struct RowBuffer {
    pub(super) data: Vec<u8>,
    pub(super) rows: usize,
    pub(super) columns: Columns,
    /// For messages.
    pub(super) place: String,
    pub(super) backend: Option<Backend>,
}

impl RowBuffer {
    pub(super) fn new(columns: Columns, place: String, backend: Option<Backend>) -> Self {
        RowBuffer { data: Vec::new(), rows: 0, columns, place, backend }
    }
}

impl SinkBuffer for RowBuffer {
    fn len(&self) -> usize {
        self.rows
    }

    fn is_full(&self) -> bool {
        self.rows >= FULL_ROWS || self.data.len() >= FULL_BYTES
    }

    fn clear(&mut self) {
        self.data.clear();
        self.rows = 0;
    }
}

impl<T: Serialize> Write<T> for RowBuffer {
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        let start = self.data.len();
        match encode_row(&record, self) {
            Ok(()) => {
                self.rows += 1;
                Ok(())
            }
            Err(error) => {
                self.data.truncate(start);
                Err(error.into())
            }
        }
    }
}

impl StagingBuffer for RowBuffer {
    fn stage(&self, staged: &mut Staged) -> Result<(), BoxError> {
        let (names, width) = match &self.columns {
            Columns::Unnamed(width) => (&[][..], width.unwrap_or(0)),
            Columns::Learned(names) | Columns::Fixed(names) => (&names[..], names.len()),
        };
        if staged.rows == 0 {
            staged.columns = names.to_vec();
            staged.width = width;
        } else if staged.columns != names || staged.width != width {
            // Each buffer learns its columns anew.
            return Err(format!(
                "{}: records with the columns {} came after records with the columns {}: write one kind only, or add `.columns([..])`",
                self.place,
                names.join(", "),
                staged.columns.join(", "),
            )
            .into());
        }
        staged.append(&self.data, self.rows);
        Ok(())
    }
}

/// Whole records on their way to a closure, see [`apply`](super::apply).
#[derive(Debug)]
pub struct RecordBuffer<R> {
    data: Vec<u8>,
    rows: usize,
    scratch: Vec<u8>,
    records: PhantomData<fn(R)>,
}

impl<R> RecordBuffer<R> {
    pub(super) fn new() -> Self {
        RecordBuffer { data: Vec::new(), rows: 0, scratch: Vec::new(), records: PhantomData }
    }
}

impl<R: Serialize> RecordBuffer<R> {
    fn push(&mut self, record: &R) -> Result<(), BoxError> {
        self.scratch.clear();
        // By name, so that a later version of the job, whose record gained a field, can read what this one staged.
        record.serialize(&mut rmp_serde::Serializer::new(&mut self.scratch).with_struct_map())?;
        varint(self.scratch.len() as u64, &mut self.data);
        self.data.extend_from_slice(&self.scratch);
        self.rows += 1;
        Ok(())
    }
}

impl<R: 'static> SinkBuffer for RecordBuffer<R> {
    fn len(&self) -> usize {
        self.rows
    }

    fn is_full(&self) -> bool {
        self.rows >= FULL_ROWS || self.data.len() >= FULL_BYTES
    }

    fn clear(&mut self) {
        self.data.clear();
        self.rows = 0;
    }
}

impl<R: Serialize + 'static> Write<R> for RecordBuffer<R> {
    fn write(&mut self, record: R) -> Result<(), BoxError> {
        self.push(&record)
    }
}

impl<R: Serialize + 'static> Write<&R> for RecordBuffer<R> {
    fn write(&mut self, record: &R) -> Result<(), BoxError> {
        self.push(record)
    }
}

impl<R: 'static> StagingBuffer for RecordBuffer<R> {
    fn stage(&self, staged: &mut Staged) -> Result<(), BoxError> {
        staged.append(&self.data, self.rows);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::sql::value::{Rows, Value};

    #[derive(Serialize)]
    struct Count<'a> {
        word: &'a str,
        n: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }

    fn buffer(columns: Columns) -> RowBuffer {
        RowBuffer::new(columns, "table `t`".into(), Some(Backend::Sqlite))
    }

    fn learned() -> RowBuffer {
        buffer(Columns::Learned(Vec::new()))
    }

    fn fixed(names: &[&str]) -> RowBuffer {
        buffer(Columns::Fixed(names.iter().map(|&name| name.to_owned()).collect()))
    }

    fn rows(buffer: &RowBuffer) -> Vec<Vec<String>> {
        let mut staged = Staged::default();
        buffer.stage(&mut staged).unwrap();
        let rows = Rows::decode(&mut staged.data(), staged.rows as usize, staged.width).unwrap();
        (0..rows.len()).map(|i| rows.row(i).iter().map(|v| format!("{v:?}")).collect()).collect()
    }

    fn refusal<T: Serialize>(mut buffer: RowBuffer, record: T) -> String {
        let before = buffer.data.len();
        let error = buffer.write(record).unwrap_err().to_string();
        assert_eq!(buffer.data.len(), before);
        error
    }

    #[test]
    fn the_fields_of_a_struct_are_columns() {
        let mut buffer = learned();
        buffer.write(Count { word: "a", n: 1, note: None }).unwrap();
        buffer.write(&Count { word: "b", n: 2, note: Some("x".into()) }).unwrap();
        assert_eq!(buffer.columns.name(2), Some("note"));
        assert_eq!(
            rows(&buffer),
            [["Text(\"a\")", "Int(1)", "Null"], ["Text(\"b\")", "Int(2)", "Text(\"x\")"]]
        );
    }

    #[test]
    fn columns_pick_and_order_the_fields() {
        let mut buffer = fixed(&["n", "word"]);
        buffer.write(Count { word: "a", n: 1, note: None }).unwrap();
        assert_eq!(rows(&buffer), [["Int(1)", "Text(\"a\")"]]);

        let map = std::collections::BTreeMap::from([("n", 3), ("word", 4), ("other", 5)]);
        let mut buffer = fixed(&["word", "n"]);
        buffer.write(&map).unwrap();
        assert_eq!(rows(&buffer), [["Int(4)", "Int(3)"]]);
        assert!(refusal(learned(), map).contains("add `.columns([..])`"));
        assert!(
            refusal(fixed(&["word", "x"]), Count { word: "a", n: 1, note: None }).contains("no field `x`")
        );
    }

    #[test]
    fn tuples_need_names() {
        let mut buffer = fixed(&["word", "n"]);
        buffer.write(("a", 1u64)).unwrap();
        buffer.write((String::from("b"), 2i8)).unwrap();
        assert_eq!(rows(&buffer), [["Text(\"a\")", "Int(1)"], ["Text(\"b\")", "Int(2)"]]);
        assert!(refusal(learned(), ("a", 1)).contains("add `.columns([..])`"));
        assert!(refusal(fixed(&["word"]), ("a", 1)).contains("names 1 and the record has 2"));
        assert!(refusal(buffer_of_parameters(1), ("a", 1)).contains("takes 1 parameters"));
    }

    fn buffer_of_parameters(width: usize) -> RowBuffer {
        buffer(Columns::Unnamed(Some(width)))
    }

    #[test]
    fn parameters_go_by_position() {
        let mut buffer = buffer_of_parameters(3);
        buffer.write(Count { word: "a", n: 1, note: None }).unwrap();
        buffer.write((1.5, true, b'x')).unwrap();
        assert_eq!(
            rows(&buffer),
            [["Text(\"a\")", "Int(1)", "Null"], ["Float(1.5)", "Bool(true)", "Int(120)"]]
        );
        let mut buffer = buffer_of_parameters(1);
        buffer.write(7).unwrap();
        buffer.write("x").unwrap();
        assert_eq!(rows(&buffer), [["Int(7)"], ["Text(\"x\")"]]);
    }

    #[test]
    fn nested_values_are_json() {
        let mut buffer = fixed(&["tags"]);
        buffer.write((vec!["a", "b"],)).unwrap();
        assert_eq!(rows(&buffer), [["Text(\"[\\\"a\\\",\\\"b\\\"]\")"]]);
    }

    #[test]
    fn what_does_not_fit_names_its_column() {
        assert!(refusal(fixed(&["n"]), (u64::MAX,)).contains("column `n`"));
        assert!(refusal(learned(), Count { word: "a", n: u64::MAX, note: None }).contains("column `n`"));
        let mut buffer = learned();
        buffer.write(Count { word: "a", n: 1, note: None }).unwrap();

        #[derive(Serialize)]
        struct Other {
            word: u8,
        }
        assert!(refusal(buffer, Other { word: 1 }).contains("no field `n`"));
    }

    #[test]
    fn a_refused_first_record_teaches_nothing() {
        #[derive(Serialize)]
        struct Wide {
            a: u64,
            b: u64,
        }
        let mut buffer = learned();
        assert!(buffer.write(Wide { a: 1, b: u64::MAX }).is_err());
        buffer.write(Count { word: "a", n: 1, note: None }).unwrap();
        assert_eq!(buffer.columns, Columns::Learned(vec!["word".into(), "n".into(), "note".into()]));
        assert_eq!(rows(&buffer).len(), 1);
    }

    #[test]
    fn a_postgresql_row_may_hold_any_u64() {
        let mut buffer = RowBuffer::new(Columns::Unnamed(None), String::new(), Some(Backend::Postgres));
        buffer.write(u64::MAX).unwrap();
        assert_eq!(Value::decode(&mut &buffer.data[..]).unwrap(), Value::UInt(u64::MAX));
    }
}
