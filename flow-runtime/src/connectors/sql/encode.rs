//! A record becomes a row.

use std::fmt;

use serde::ser::{self, Impossible, Serialize};

use super::{
    buffer::{Columns, RowBuffer},
    error::SqlError,
    scalar::encode_field,
    value::Value,
};

/// Appends the record to the buffer's data; on an error the caller takes off what is there already.
pub(super) fn encode_row<T: Serialize + ?Sized>(record: &T, into: &mut RowBuffer) -> Result<(), SqlError> {
    record.serialize(RowSerializer { into }).map_err(|Refused(why)| SqlError::Record(why))
}

#[derive(Debug)]
pub(super) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Refused(message.to_string())
    }
}

struct RowSerializer<'a> {
    into: &'a mut RowBuffer,
}

impl<'a> RowSerializer<'a> {
    fn not_a_row<T>(self, what: &str) -> Result<T, Refused> {
        Err(Refused(format!(
            "{}: a record must be a struct, or a tuple with `.columns([..])`, not {what}",
            self.into.place
        )))
    }

    fn positional(self) -> Positional<'a> {
        Positional { into: self.into, next: 0 }
    }

    /// A record that is no struct and no tuple: a row of one value.
    fn single<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refused> {
        let mut row = self.positional();
        row.push(value)?;
        row.finish()
    }

    fn named(self) -> Named<'a> {
        let start = self.into.data.len();
        Named { into: self.into, start, slots: Vec::new(), next: 0, key: None }
    }
}

/// A row by position.
struct Positional<'a> {
    into: &'a mut RowBuffer,
    next: usize,
}

impl Positional<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        let RowBuffer { data, columns, place, backend, .. } = &mut *self.into;
        encode_field(value, *backend, data).map_err(|why| match columns.name(self.next) {
            Some(column) => Refused(format!("{place}: column `{column}`: {why}")),
            None => Refused(format!("{place}: field {}: {why}", self.next + 1)),
        })?;
        self.next += 1;
        Ok(())
    }

    fn finish(self) -> Result<(), Refused> {
        let place = &self.into.place;
        match &mut self.into.columns {
            Columns::Unnamed(width @ None) => *width = Some(self.next),
            Columns::Unnamed(Some(width)) if *width == self.next => {}
            Columns::Unnamed(Some(width)) => {
                return Err(Refused(format!(
                    "{place}: it takes {width} parameters and the record has {} fields",
                    self.next
                )));
            }
            Columns::Fixed(names) if names.len() == self.next => {}
            Columns::Fixed(names) => {
                return Err(Refused(format!(
                    "{place}: `.columns` names {} and the record has {} fields",
                    names.len(),
                    self.next
                )));
            }
            Columns::Learned(_) => {
                return Err(Refused(format!(
                    "{place}: the record is no struct, so its columns have no names: add `.columns([..])`"
                )));
            }
        }
        Ok(())
    }
}

/// A row by name. In the order of the columns, values are encoded in place.
struct Named<'a> {
    into: &'a mut RowBuffer,
    start: usize,
    /// Where each column's value is, from `start`, once one came out of order.
    slots: Vec<Option<(usize, usize)>>,
    next: usize,
    /// Of a map's entry, whose value comes after it.
    key: Option<String>,
}

impl Named<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Refused> {
        let learning = matches!(&self.into.columns, Columns::Learned(_)) && self.into.rows == 0;
        let column = match &mut self.into.columns {
            Columns::Unnamed(_) => Some(self.next),
            Columns::Learned(names) if learning => {
                // The first record decides; what an earlier, refused one left is replaced.
                names.truncate(self.next);
                names.push(name.to_owned());
                Some(self.next)
            }
            Columns::Learned(names) => match names.get(self.next) {
                Some(known) if known == name => Some(self.next),
                _ => {
                    let known = names.join(", ");
                    return Err(Refused(format!(
                        "{}: the record has a field `{name}` where the first had the columns {known}",
                        self.into.place
                    )));
                }
            },
            Columns::Fixed(names) => match names.get(self.next) {
                Some(known) if known == name => Some(self.next),
                _ => names.iter().position(|known| known == name),
            },
        };
        // A field that `.columns` does not name is left out.
        let Some(column) = column else { return Ok(()) };
        if column != self.next && self.slots.is_empty() {
            self.index_so_far()?;
        }
        let from = self.into.data.len();
        let RowBuffer { data, place, backend, .. } = &mut *self.into;
        encode_field(value, *backend, data)
            .map_err(|why| Refused(format!("{place}: column `{name}`: {why}")))?;
        if !self.slots.is_empty() {
            let range = (from - self.start, self.into.data.len() - self.start);
            if self.slots[column].replace(range).is_some() {
                return Err(Refused(format!("{}: two fields are named `{name}`", self.into.place)));
            }
        }
        self.next += 1;
        Ok(())
    }

    /// Notes where the values are that came in order.
    fn index_so_far(&mut self) -> Result<(), Refused> {
        let Columns::Fixed(names) = &self.into.columns else { return Ok(()) };
        self.slots = vec![None; names.len()];
        let row = &self.into.data[self.start..];
        let mut rest = row;
        for slot in &mut self.slots[..self.next] {
            let from = row.len() - rest.len();
            Value::decode(&mut rest).map_err(|e| Refused(e.to_string()))?;
            *slot = Some((from, row.len() - rest.len()));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Refused> {
        let RowBuffer { data, columns, place, rows, .. } = self.into;
        let missing = |name: &str| Err(Refused(format!("{place}: the record has no field `{name}`")));
        match columns {
            Columns::Unnamed(_) => return Positional { into: self.into, next: self.next }.finish(),
            Columns::Learned(names) => {
                if *rows == 0 {
                    names.truncate(self.next);
                    if names.is_empty() {
                        return Err(Refused(format!("{place}: the record has no fields")));
                    }
                } else if let Some(name) = names.get(self.next) {
                    return missing(name);
                }
            }
            Columns::Fixed(names) if self.slots.is_empty() => {
                if let Some(name) = names.get(self.next) {
                    return missing(name);
                }
            }
            Columns::Fixed(names) => {
                let row = data.split_off(self.start);
                for (slot, name) in self.slots.iter().zip(names) {
                    match slot {
                        Some((from, to)) => data.extend_from_slice(&row[*from..*to]),
                        None => return missing(name),
                    }
                }
            }
        }
        Ok(())
    }
}

impl<'a> ser::Serializer for RowSerializer<'a> {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Positional<'a>;
    type SerializeTuple = Positional<'a>;
    type SerializeTupleStruct = Positional<'a>;
    type SerializeTupleVariant = Impossible<(), Refused>;
    type SerializeMap = Named<'a>;
    type SerializeStruct = Named<'a>;
    type SerializeStructVariant = Impossible<(), Refused>;

    fn serialize_bool(self, v: bool) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_i8(self, v: i8) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_i16(self, v: i16) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_i32(self, v: i32) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_i64(self, v: i64) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_i128(self, v: i128) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_u8(self, v: u8) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_u16(self, v: u16) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_u32(self, v: u32) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_u64(self, v: u64) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_u128(self, v: u128) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_f32(self, v: f32) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_f64(self, v: f64) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_char(self, v: char) -> Result<(), Refused> {
        self.single(&v)
    }

    fn serialize_str(self, v: &str) -> Result<(), Refused> {
        self.single(v)
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Refused> {
        let RowBuffer { data, .. } = &mut *self.into;
        Value::Bytes(v).encode(data);
        Positional { into: self.into, next: 1 }.finish()
    }

    fn serialize_none(self) -> Result<(), Refused> {
        self.not_a_row("nothing")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refused> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Refused> {
        self.positional().finish()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Refused> {
        self.positional().finish()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Refused> {
        self.single(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Refused> {
        self.not_a_row("an enum")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Positional<'a>, Refused> {
        Ok(self.positional())
    }

    fn serialize_tuple(self, _: usize) -> Result<Positional<'a>, Refused> {
        Ok(self.positional())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Positional<'a>, Refused> {
        Ok(self.positional())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Refused> {
        self.not_a_row("an enum")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Named<'a>, Refused> {
        if matches!(self.into.columns, Columns::Fixed(_)) {
            return Ok(self.named());
        }
        Err(Refused(format!(
            "{}: the record is a map, which may have other keys each time: add `.columns([..])`",
            self.into.place
        )))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Named<'a>, Refused> {
        Ok(self.named())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Refused> {
        self.not_a_row("an enum")
    }
}

impl ser::SerializeSeq for Positional<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.push(value)
    }

    fn end(self) -> Result<(), Refused> {
        self.finish()
    }
}

impl ser::SerializeTuple for Positional<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.push(value)
    }

    fn end(self) -> Result<(), Refused> {
        self.finish()
    }
}

impl ser::SerializeTupleStruct for Positional<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.push(value)
    }

    fn end(self) -> Result<(), Refused> {
        self.finish()
    }
}

impl ser::SerializeStruct for Named<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        self.push(key, value)
    }

    /// What `skip_serializing_if` leaves out is null: the columns are the same for all rows.
    fn skip_field(&mut self, key: &'static str) -> Result<(), Refused> {
        self.push(key, &())
    }

    fn end(self) -> Result<(), Refused> {
        self.finish()
    }
}

impl ser::SerializeMap for Named<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        let mut data = Vec::new();
        encode_field(key, None, &mut data).map_err(Refused)?;
        match Value::decode(&mut &data[..]) {
            Ok(Value::Text(key)) => {
                self.key = Some(key.to_owned());
                Ok(())
            }
            _ => Err(Refused(format!("{}: a key of the record is no text", self.into.place))),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        let key = self.key.take().unwrap_or_default();
        self.push(&key, value)
    }

    fn end(self) -> Result<(), Refused> {
        self.finish()
    }
}
