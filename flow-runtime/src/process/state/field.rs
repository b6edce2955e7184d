//! The fields of a state in a checkpoint: by name, so that a struct may gain and lose some.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};

use super::{State, Ttl, to_bytes};
use crate::{error::BoxError, time::Timestamp};

/// What a derived state asks of a field: looked up in one place per field, so that a field that cannot be kept is one
/// error.
#[derive(Debug)]
pub struct StateField<T> {
    /// See the methods of [`State`].
    pub expires: bool,
    /// As above.
    pub empty: fn(Option<&'static Ttl>) -> T,
    /// As above.
    pub copy: fn(&T) -> T,
    /// As above.
    pub holds_nothing: fn(&T) -> bool,
    /// As above.
    pub ends: fn(&T) -> Option<Timestamp>,
    /// As above.
    pub clean: fn(&mut T, Timestamp),
    encode: fn(&T) -> Result<Vec<u8>, BoxError>,
    decode: fn(&[u8], Option<&'static Ttl>) -> Result<T, BoxError>,
}

/// The field of a state.
#[must_use]
pub const fn state_field<T: State>() -> StateField<T> {
    StateField {
        expires: T::EXPIRES,
        empty: T::empty,
        copy: T::copy,
        holds_nothing: T::holds_nothing,
        ends: T::ends,
        clean: T::clean,
        encode: T::encode,
        decode: T::decode,
    }
}

/// The fields of a state, on their way to the checkpoint or back.
#[derive(Debug, Default)]
pub struct Stored<'a>(Vec<(Cow<'a, str>, Bytes<'a>)>);

impl Stored<'_> {
    /// Adds a field, if it holds anything.
    ///
    /// # Errors
    /// When it cannot be serialized.
    pub fn put<T>(&mut self, field: &StateField<T>, name: &'static str, value: &T) -> Result<(), BoxError> {
        if !(field.holds_nothing)(value) {
            let bytes = (field.encode)(value).map_err(|error| format!("field `{name}`: {error}"))?;
            self.0.push((Cow::Borrowed(name), Bytes(Cow::Owned(bytes))));
        }
        Ok(())
    }

    /// A field, which is empty when it is not there.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn get<T>(
        &self,
        field: &StateField<T>,
        name: &str,
        ttl: Option<&'static Ttl>,
    ) -> Result<T, BoxError> {
        match self.0.iter().find(|(stored, _)| stored == name) {
            Some((_, bytes)) => {
                Ok((field.decode)(&bytes.0, ttl).map_err(|error| format!("field `{name}`: {error}"))?)
            }
            None => Ok((field.empty)(ttl)),
        }
    }

    /// As bytes.
    ///
    /// # Errors
    /// Never in practice.
    pub fn encode(&self) -> Result<Vec<u8>, BoxError> {
        to_bytes(&self.0)
    }

    /// Of bytes.
    ///
    /// # Errors
    /// When they are none of a state.
    pub fn decode(bytes: &[u8]) -> Result<Self, BoxError> {
        let mut deserializer = rmp_serde::Deserializer::new(bytes).with_human_readable();
        Ok(Stored(Deserialize::deserialize(&mut deserializer)?))
    }
}

/// Bytes that serde writes as bytes, and not as a list of numbers.
#[derive(Clone, Debug)]
pub(in crate::process) struct Bytes<'a>(pub(in crate::process) Cow<'a, [u8]>);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Owned;
        impl Visitor<'_> for Owned {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        Ok(Bytes(Cow::Owned(deserializer.deserialize_bytes(Owned)?)))
    }
}
