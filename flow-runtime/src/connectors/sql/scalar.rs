//! One field of a record becomes one value.

use std::fmt;

use serde::ser::{self, Impossible, Serialize};

use super::{url::Backend, value::Value};

/// Appends `field` to `out`. What is nested (lists, maps, structs) becomes JSON text.
pub(super) fn encode_field<T: Serialize + ?Sized>(
    field: &T,
    backend: Option<Backend>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    match field.serialize(Scalar { backend, out }) {
        Ok(()) => Ok(()),
        Err(NotScalar::Nested) => match serde_json::to_string(field) {
            Ok(json) => {
                Value::Text(&json).encode(out);
                Ok(())
            }
            Err(error) => Err(format!("its value cannot be written as JSON: {error}")),
        },
        Err(NotScalar::Refused(why)) => Err(why),
    }
}

#[derive(Debug)]
enum NotScalar {
    Nested,
    Refused(String),
}

impl fmt::Display for NotScalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotScalar::Nested => f.write_str("a nested value"),
            NotScalar::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NotScalar {}

impl ser::Error for NotScalar {
    fn custom<T: fmt::Display>(message: T) -> Self {
        NotScalar::Refused(message.to_string())
    }
}

struct Scalar<'a> {
    backend: Option<Backend>,
    out: &'a mut Vec<u8>,
}

impl Scalar<'_> {
    fn put(self, value: Value<'_>) -> Result<(), NotScalar> {
        value.encode(self.out);
        Ok(())
    }

    /// SQLite's integers end at `i64::MAX`; above, it would silently go on with a float.
    fn wide(self, value: impl fmt::Display) -> Result<(), NotScalar> {
        if self.backend == Some(Backend::Sqlite) {
            return Err(NotScalar::Refused(format!(
                "{value} is beyond the 64-bit signed integers, the largest that SQLite has"
            )));
        }
        self.put(Value::Text(&value.to_string()))
    }
}

type Never = Impossible<(), NotScalar>;

impl ser::Serializer for Scalar<'_> {
    type Ok = ();
    type Error = NotScalar;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    fn serialize_bool(self, v: bool) -> Result<(), NotScalar> {
        self.put(Value::Bool(v))
    }

    fn serialize_i8(self, v: i8) -> Result<(), NotScalar> {
        self.put(Value::Int(v.into()))
    }

    fn serialize_i16(self, v: i16) -> Result<(), NotScalar> {
        self.put(Value::Int(v.into()))
    }

    fn serialize_i32(self, v: i32) -> Result<(), NotScalar> {
        self.put(Value::Int(v.into()))
    }

    fn serialize_i64(self, v: i64) -> Result<(), NotScalar> {
        self.put(Value::Int(v))
    }

    fn serialize_i128(self, v: i128) -> Result<(), NotScalar> {
        match i64::try_from(v) {
            Ok(v) => self.put(Value::Int(v)),
            Err(_) => self.wide(v),
        }
    }

    fn serialize_u8(self, v: u8) -> Result<(), NotScalar> {
        self.put(Value::Int(v.into()))
    }

    fn serialize_u16(self, v: u16) -> Result<(), NotScalar> {
        self.put(Value::Int(v.into()))
    }

    fn serialize_u32(self, v: u32) -> Result<(), NotScalar> {
        self.put(Value::Int(v.into()))
    }

    fn serialize_u64(self, v: u64) -> Result<(), NotScalar> {
        match Value::from_u64(v) {
            Value::UInt(v) if self.backend == Some(Backend::Sqlite) => self.wide(v),
            value => self.put(value),
        }
    }

    fn serialize_u128(self, v: u128) -> Result<(), NotScalar> {
        match u64::try_from(v) {
            Ok(v) => self.serialize_u64(v),
            Err(_) => self.wide(v),
        }
    }

    fn serialize_f32(self, v: f32) -> Result<(), NotScalar> {
        self.put(Value::Float(v.into()))
    }

    fn serialize_f64(self, v: f64) -> Result<(), NotScalar> {
        self.put(Value::Float(v))
    }

    fn serialize_char(self, v: char) -> Result<(), NotScalar> {
        self.put(Value::Text(v.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, v: &str) -> Result<(), NotScalar> {
        self.put(Value::Text(v))
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), NotScalar> {
        self.put(Value::Bytes(v))
    }

    fn serialize_none(self) -> Result<(), NotScalar> {
        self.put(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NotScalar> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NotScalar> {
        self.put(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), NotScalar> {
        self.put(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), NotScalar> {
        self.put(Value::Text(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NotScalar> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), NotScalar> {
        Err(NotScalar::Nested)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Never, NotScalar> {
        Err(NotScalar::Nested)
    }

    fn serialize_tuple(self, _: usize) -> Result<Never, NotScalar> {
        Err(NotScalar::Nested)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Never, NotScalar> {
        Err(NotScalar::Nested)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, NotScalar> {
        Err(NotScalar::Nested)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Never, NotScalar> {
        Err(NotScalar::Nested)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Never, NotScalar> {
        Err(NotScalar::Nested)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, NotScalar> {
        Err(NotScalar::Nested)
    }
}
