//! A serde serializer that writes a record as one row.

use std::{fmt::Display, io::Write};

use serde::{Serialize, ser};

/// Why a record is no row.
#[derive(Debug, thiserror::Error)]
#[error("cannot write a record as a row: {0}")]
pub(super) struct NoRow(String);

impl ser::Error for NoRow {
    fn custom<T: Display>(message: T) -> Self {
        NoRow(message.to_string())
    }
}

/// Appends `record` without a line ending, and says how many columns it has. Nested tuples and structs are
/// flattened.
#[inline]
pub(super) fn write<T: Serialize>(record: &T, delimiter: u8, out: &mut Vec<u8>) -> Result<usize, NoRow> {
    let start = out.len();
    let mut row = Row { out, delimiter, columns: 0, naming: false };
    record.serialize(&mut row)?;
    let columns = row.columns;
    if out.len() == start {
        // An empty line would be no row to those who read it.
        out.extend_from_slice(b"\"\"");
    }
    Ok(columns)
}

/// Appends the names of the columns of `record`, and says how many there are: none for a tuple.
pub(super) fn names<T: Serialize>(record: &T, delimiter: u8, out: &mut Vec<u8>) -> Result<usize, NoRow> {
    let mut row = Row { out, delimiter, columns: 0, naming: true };
    record.serialize(&mut row)?;
    Ok(row.columns)
}

struct Row<'a> {
    out: &'a mut Vec<u8>,
    delimiter: u8,
    columns: usize,
    /// Write the names of struct fields in place of their values.
    naming: bool,
}

impl Row<'_> {
    #[inline]
    fn column(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.naming {
            return;
        }
        self.next_column();
        write(self.out);
    }

    #[inline]
    fn next_column(&mut self) {
        if self.columns > 0 {
            self.out.push(self.delimiter);
        }
        self.columns += 1;
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let delimiter = self.delimiter;
        self.column(|out| quote(bytes, delimiter, out));
    }

    fn name(&mut self, name: &str) {
        self.next_column();
        quote(name.as_bytes(), self.delimiter, self.out);
    }
}

#[inline]
fn quote(bytes: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    // Without a branch per byte, so that it is vectorized.
    let special = |byte: u8| (byte == delimiter) | (byte == b'"') | (byte == b'\n') | (byte == b'\r');
    if !bytes.iter().fold(false, |any, &byte| any | special(byte)) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for part in bytes.split_inclusive(|&byte| byte == b'"') {
        out.extend_from_slice(part);
        if part.ends_with(b"\"") {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

macro_rules! integers {
    ($($method:ident: $type:ty),*) => {
        $(#[inline]
        fn $method(self, value: $type) -> Result<(), NoRow> {
            self.column(|out| out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()));
            Ok(())
        })*
    };
}

macro_rules! displayed {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<(), NoRow> {
            let mut written = Ok(());
            self.column(|out| written = write!(out, "{value}"));
            written.map_err(ser::Error::custom)
        })*
    };
}

impl ser::Serializer for &mut Row<'_> {
    type Ok = ();
    type Error = NoRow;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = ser::Impossible<(), NoRow>;
    type SerializeMap = ser::Impossible<(), NoRow>;
    type SerializeStruct = Self;
    type SerializeStructVariant = ser::Impossible<(), NoRow>;

    integers!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128
    );
    displayed!(serialize_bool: bool, serialize_f32: f32, serialize_f64: f64);

    fn serialize_char(self, value: char) -> Result<(), NoRow> {
        self.bytes(value.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), NoRow> {
        self.bytes(value.as_bytes());
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), NoRow> {
        self.bytes(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), NoRow> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NoRow> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NoRow> {
        self.column(|_| {});
        Ok(())
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), NoRow> {
        self.serialize_str(name)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), NoRow> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NoRow> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), NoRow> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, NoRow> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, NoRow> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, NoRow> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, NoRow> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, NoRow> {
        Err(NoRow("a map has no fixed columns; write it as json".to_owned()))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, NoRow> {
        Err(NoRow(format!("`{name}::{variant}` has no fixed columns; write it as json")))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, NoRow> {
        Err(NoRow(format!("`{name}::{variant}` has no fixed columns; write it as json")))
    }
}

macro_rules! elements {
    ($($part:ident: $method:ident),*) => {
        $(impl ser::$part for &mut Row<'_> {
            type Ok = ();
            type Error = NoRow;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoRow> {
                value.serialize(&mut **self)
            }

            #[inline]
            fn end(self) -> Result<(), NoRow> {
                Ok(())
            }
        })*
    };
}

elements!(SerializeSeq: serialize_element, SerializeTuple: serialize_element, SerializeTupleStruct: serialize_field);

impl ser::SerializeStruct for &mut Row<'_> {
    type Ok = ();
    type Error = NoRow;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), NoRow> {
        let before = self.columns;
        value.serialize(&mut **self)?;
        // A nested struct has named its own columns.
        if self.naming && self.columns == before {
            self.name(name);
        }
        Ok(())
    }

    fn end(self) -> Result<(), NoRow> {
        Ok(())
    }
}
