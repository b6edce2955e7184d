//! The printed form of a record.

use std::{fmt::Display, io::Write};

use serde::{Serialize, ser};

/// Why a record has no printed form.
#[derive(Debug, thiserror::Error)]
#[error("cannot print a record: {0}")]
pub(super) struct Unprintable(String);

impl ser::Error for Unprintable {
    fn custom<T: Display>(message: T) -> Self {
        Unprintable(message.to_string())
    }
}

impl From<std::io::Error> for Unprintable {
    fn from(error: std::io::Error) -> Self {
        Unprintable(error.to_string())
    }
}

/// Appends `record`: `to`, `(to,1)`, `[1, 2]`, `{a=1, b=2}`, `Word{text=to, n=1}`, `null`.
pub(super) fn write<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<(), Unprintable> {
    record.serialize(Form { out })
}

struct Form<'a> {
    out: &'a mut Vec<u8>,
}

/// What stands between the elements of something, and at its end.
struct Parts<'a> {
    out: &'a mut Vec<u8>,
    between: &'static str,
    end: &'static str,
    first: bool,
}

impl<'a> Form<'a> {
    fn text(self, text: &str) -> Result<(), Unprintable> {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn parts(self, begin: &str, between: &'static str, end: &'static str) -> Parts<'a> {
        self.out.extend_from_slice(begin.as_bytes());
        Parts { out: self.out, between, end, first: true }
    }

    fn named(self, name: &str, begin: &str, between: &'static str, end: &'static str) -> Parts<'a> {
        self.out.extend_from_slice(name.as_bytes());
        self.parts(begin, between, end)
    }
}

impl Parts<'_> {
    fn separate(&mut self) {
        if !self.first {
            self.out.extend_from_slice(self.between.as_bytes());
        }
        self.first = false;
    }

    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unprintable> {
        self.separate();
        value.serialize(Form { out: self.out })
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Unprintable> {
        self.separate();
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'=');
        value.serialize(Form { out: self.out })
    }

    fn close(self) -> Result<(), Unprintable> {
        self.out.extend_from_slice(self.end.as_bytes());
        Ok(())
    }
}

macro_rules! displayed {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<(), Unprintable> {
            Ok(write!(self.out, "{value}")?)
        })*
    };
}

type Variant = &'static str;

impl<'a> ser::Serializer for Form<'a> {
    type Ok = ();
    type Error = Unprintable;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    displayed!(
        serialize_bool: bool, serialize_char: char, serialize_f32: f32, serialize_f64: f64,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128
    );

    fn serialize_str(self, value: &str) -> Result<(), Unprintable> {
        self.text(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Unprintable> {
        Ok(write!(self.out, "{}", value.escape_ascii())?)
    }

    fn serialize_none(self) -> Result<(), Unprintable> {
        self.text("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unprintable> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unprintable> {
        self.text("()")
    }

    fn serialize_unit_struct(self, name: Variant) -> Result<(), Unprintable> {
        self.text(name)
    }

    fn serialize_unit_variant(self, _: Variant, _: u32, variant: Variant) -> Result<(), Unprintable> {
        self.text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: Variant,
        value: &T,
    ) -> Result<(), Unprintable> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: Variant,
        _: u32,
        variant: Variant,
        value: &T,
    ) -> Result<(), Unprintable> {
        let mut parts = self.named(variant, "(", ",", ")");
        parts.part(value)?;
        parts.close()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Unprintable> {
        Ok(self.parts("[", ", ", "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Unprintable> {
        Ok(self.parts("(", ",", ")"))
    }

    fn serialize_tuple_struct(self, name: Variant, _: usize) -> Result<Parts<'a>, Unprintable> {
        Ok(self.named(name, "(", ",", ")"))
    }

    fn serialize_tuple_variant(
        self,
        _: Variant,
        _: u32,
        variant: Variant,
        _: usize,
    ) -> Result<Parts<'a>, Unprintable> {
        Ok(self.named(variant, "(", ",", ")"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Unprintable> {
        Ok(self.parts("{", ", ", "}"))
    }

    fn serialize_struct(self, name: Variant, _: usize) -> Result<Parts<'a>, Unprintable> {
        Ok(self.named(name, "{", ", ", "}"))
    }

    fn serialize_struct_variant(
        self,
        _: Variant,
        _: u32,
        variant: Variant,
        _: usize,
    ) -> Result<Parts<'a>, Unprintable> {
        Ok(self.named(variant, "{", ", ", "}"))
    }
}

macro_rules! parts {
    ($($kind:ident: $method:ident($($name:ident)?) => $call:ident),*) => {
        $(impl ser::$kind for Parts<'_> {
            type Ok = ();
            type Error = Unprintable;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                value: &T,
            ) -> Result<(), Unprintable> {
                self.$call($($name,)? value)
            }

            fn end(self) -> Result<(), Unprintable> {
                self.close()
            }
        })*
    };
}

parts!(
    SerializeSeq: serialize_element() => part,
    SerializeTuple: serialize_element() => part,
    SerializeTupleStruct: serialize_field() => part,
    SerializeTupleVariant: serialize_field() => part,
    SerializeStruct: serialize_field(name) => field,
    SerializeStructVariant: serialize_field(name) => field
);

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Unprintable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unprintable> {
        self.part(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unprintable> {
        self.out.push(b'=');
        value.serialize(Form { out: self.out })
    }

    fn end(self) -> Result<(), Unprintable> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Point,
        Circle(f64),
        Box { width: u8, height: u8 },
    }

    #[derive(Serialize)]
    struct Word<'a> {
        text: &'a str,
        n: Option<u64>,
    }

    fn form<T: Serialize>(record: T) -> String {
        let mut out = Vec::new();
        write(&record, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn forms() {
        assert_eq!(form(("to be", 1u64)), "(to be,1)");
        assert_eq!(form((("a", 'b'), 1.5, true, ())), "((a,b),1.5,true,())");
        assert_eq!(form([vec![1, 2], vec![]]), "([1, 2],[])");
        assert_eq!(form(Word { text: "to", n: Some(1) }), "Word{text=to, n=1}");
        assert_eq!(form(Word { text: "to", n: None }), "Word{text=to, n=null}");
        assert_eq!(form(BTreeMap::from([("a", 1), ("b", 2)])), "{a=1, b=2}");
        let shapes = (Shape::Point, Shape::Circle(0.5), Shape::Box { width: 1, height: 2 });
        assert_eq!(form(shapes), "(Point,Circle(0.5),Box{width=1, height=2})");
    }
}
