//! One value of a row, and its compact form in a staged epoch.
//!
//! A row is its values one after the other; a value is a tag byte and what the tag says:
//!
//! | tag | value |
//! |---|---|
//! | 0 | null |
//! | 1, 2 | false, true |
//! | 3 | an `i64`: zigzag varint |
//! | 4 | a `u64` above `i64::MAX`: varint |
//! | 5 | an `f64`: 8 bytes, little endian |
//! | 6, 7 | text, bytes: length as varint, then the bytes |

use std::cmp::Ordering;

use super::error::SqlError;

/// One value of a row, as it is bound to a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`: smaller ones are `Int`.
    UInt(u64),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn from_u64(value: u64) -> Self {
        i64::try_from(value).map_or(Value::UInt(value), Value::Int)
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.push(0),
            Value::Bool(value) => out.push(1 + u8::from(value)),
            Value::Int(value) => {
                out.push(3);
                varint(((value << 1) ^ (value >> 63)).cast_unsigned(), out);
            }
            Value::UInt(value) => {
                out.push(4);
                varint(value, out);
            }
            Value::Float(value) => {
                out.push(5);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Value::Text(text) => {
                out.push(6);
                varint(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
            }
            Value::Bytes(bytes) => {
                out.push(7);
                varint(bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Takes the first value off `data`.
    pub(super) fn decode(data: &mut &'a [u8]) -> Result<Self, SqlError> {
        let (&tag, rest) = data.split_first().ok_or_else(damaged)?;
        *data = rest;
        Ok(match tag {
            0 => Value::Null,
            1 => Value::Bool(false),
            2 => Value::Bool(true),
            3 => {
                let value = read_varint(data)?;
                Value::Int((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
            }
            4 => Value::UInt(read_varint(data)?),
            5 => {
                let (bytes, rest) = data.split_first_chunk::<8>().ok_or_else(damaged)?;
                *data = rest;
                Value::Float(f64::from_le_bytes(*bytes))
            }
            6 => Value::Text(std::str::from_utf8(read_bytes(data)?).map_err(|_| damaged())?),
            7 => Value::Bytes(read_bytes(data)?),
            _ => return Err(damaged()),
        })
    }

    /// How much it adds to a message to the server, roughly.
    pub(super) fn weight(&self) -> usize {
        match self {
            Value::Text(text) => text.len() + 4,
            Value::Bytes(bytes) => bytes.len() + 4,
            _ => 9,
        }
    }

    /// A total order, so that all subtasks touch rows in the same order.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::UInt(_) => 3,
            Value::Float(_) => 4,
            Value::Text(_) => 5,
            Value::Bytes(_) => 6,
        }
    }
}

pub(super) fn damaged() -> SqlError {
    SqlError::Damaged
}

pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(data: &mut &[u8]) -> Result<u64, SqlError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = data.split_first().ok_or_else(damaged)?;
        *data = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(damaged())
}

/// Bytes behind their length.
pub(super) fn read_bytes<'a>(data: &mut &'a [u8]) -> Result<&'a [u8], SqlError> {
    let len = usize::try_from(read_varint(data)?).map_err(|_| damaged())?;
    let (bytes, rest) = data.split_at_checked(len).ok_or_else(damaged)?;
    *data = rest;
    Ok(bytes)
}

/// Some rows of a staged epoch, decoded in place.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    values: Vec<Value<'a>>,
    width: usize,
}

impl<'a> Rows<'a> {
    /// Takes the first rows off `data`.
    pub(super) fn decode(data: &mut &'a [u8], rows: usize, width: usize) -> Result<Self, SqlError> {
        // A value takes a byte at least, so a damaged count cannot ask for more memory than there is data.
        if rows.checked_mul(width).is_none_or(|values| values > data.len()) {
            return Err(damaged());
        }
        let mut values = Vec::with_capacity(rows * width);
        for _ in 0..rows * width {
            values.push(Value::decode(data)?);
        }
        Ok(Rows { values, width })
    }

    pub(super) fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Values per row, at least one.
    pub(super) fn width(&self) -> usize {
        self.width.max(1)
    }

    pub(super) fn row(&self, index: usize) -> &[Value<'a>] {
        &self.values[index * self.width..][..self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(values: &[Value<'_>]) -> Vec<u8> {
        let mut data = Vec::new();
        values.iter().for_each(|value| value.encode(&mut data));
        data
    }

    #[test]
    fn every_kind_comes_back() {
        let values = [
            Value::Null,
            Value::Bool(false),
            Value::Bool(true),
            Value::Int(0),
            Value::Int(i64::MIN),
            Value::Int(i64::MAX),
            Value::from_u64(u64::MAX),
            Value::Float(-0.5),
            Value::Text("añb"),
            Value::Bytes(&[0, 255]),
            Value::Text(""),
        ];
        let data = encoded(&values);
        let rows = Rows::decode(&mut &data[..], 1, values.len()).unwrap();
        assert_eq!(rows.row(0), values);
        assert_eq!(encoded(&[Value::Int(-1)]).len(), 2);
    }

    #[test]
    fn damage_is_an_error() {
        let data = encoded(&[Value::Text("words"), Value::Int(300)]);
        for cut in 0..data.len() {
            assert!(Rows::decode(&mut &data[..cut], 1, 2).is_err(), "{cut}");
        }
        assert!(Rows::decode(&mut &data[..], usize::MAX, 2).is_err());
        assert!(Rows::decode(&mut &[9][..], 1, 1).is_err());
        assert!(Rows::decode(&mut &[6, 1, 0xff][..], 1, 1).is_err());
    }

    proptest! {
        #[test]
        fn integers_come_back(value: i64, unsigned: u64) {
            let data = encoded(&[Value::Int(value), Value::from_u64(unsigned)]);
            let rows = Rows::decode(&mut &data[..], 1, 2).unwrap();
            prop_assert_eq!(rows.row(0), &[Value::Int(value), Value::from_u64(unsigned)]);
        }

        #[test]
        fn noise_is_no_panic(data: Vec<u8>, rows in 0usize..9, width in 0usize..9) {
            let _ = Rows::decode(&mut &data[..], rows, width);
        }
    }
}
