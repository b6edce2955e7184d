//! What can be a key, a value or a header.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::Serialize;

use crate::error::BoxError;

/// What can be the key or the value of a Kafka record, or the value of a header: text and bytes as they are, integers
/// as decimal text, [`AsJson`], and `None` or `()` for none at all.
///
/// A record without a value is a tombstone: on a compacted topic it deletes its key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key or value of a kafka record",
    note = "text, bytes and integers can; wrap anything else that is `Serialize` in `kafka::AsJson(..)`"
)]
pub trait Payload {
    /// Appends its bytes and returns true, or returns false if there is nothing, which is not the same as empty.
    ///
    /// # Errors
    /// When it cannot be encoded.
    fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError>;
}

macro_rules! bytes {
    ($($of:ty),*) => {$(
        impl Payload for $of {
            #[inline]
            fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError> {
                let bytes: &[u8] = self.as_ref();
                into.extend_from_slice(bytes);
                Ok(true)
            }
        }
    )*};
}

bytes!(str, String, [u8], Vec<u8>, Box<[u8]>, bytes::Bytes);

impl<const N: usize> Payload for [u8; N] {
    #[inline]
    fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError> {
        self.as_slice().put(into)
    }
}

macro_rules! integers {
    ($($of:ty),*) => {$(
        impl Payload for $of {
            #[inline]
            fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError> {
                into.extend_from_slice(itoa::Buffer::new().format(*self).as_bytes());
                Ok(true)
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl Payload for () {
    #[inline]
    fn put(&self, _: &mut Vec<u8>) -> Result<bool, BoxError> {
        Ok(false)
    }
}

impl<P: Payload> Payload for Option<P> {
    #[inline]
    fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError> {
        match self {
            Some(payload) => payload.put(into),
            None => Ok(false),
        }
    }
}

impl<P: Payload + ?Sized> Payload for &P {
    #[inline]
    fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError> {
        (**self).put(into)
    }
}

impl<P: Payload + ?Sized> Payload for Arc<P> {
    #[inline]
    fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError> {
        (**self).put(into)
    }
}

impl<P: Payload + ToOwned + ?Sized> Payload for Cow<'_, P> {
    #[inline]
    fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError> {
        (**self).put(into)
    }
}

/// Anything serde can write, as JSON.
///
/// ```
/// use flow_runtime::connectors::kafka::{AsJson, Record};
///
/// let record = Record::new(AsJson(("widget", 3))).key("order-17");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct AsJson<T>(pub T);

impl<T: Serialize> Payload for AsJson<T> {
    #[inline]
    fn put(&self, into: &mut Vec<u8>) -> Result<bool, BoxError> {
        serde_json::to_writer(into, &self.0)
            .map_err(|error| format!("cannot write a record as json: {error}"))?;
        Ok(true)
    }
}

impl<T: fmt::Debug> fmt::Debug for AsJson<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsJson").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(payload: impl Payload) -> Option<String> {
        let mut bytes = Vec::new();
        payload.put(&mut bytes).unwrap().then(|| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn text_bytes_numbers_json_and_nothing() {
        assert_eq!(put("a").as_deref(), Some("a"));
        assert_eq!(put(String::new()).as_deref(), Some(""));
        assert_eq!(put(b"ab").as_deref(), Some("ab"));
        assert_eq!(put(Cow::Borrowed("c")).as_deref(), Some("c"));
        assert_eq!(put(-17i64).as_deref(), Some("-17"));
        assert_eq!(put(AsJson((1, "x"))).as_deref(), Some("[1,\"x\"]"));
        assert_eq!(put(()), None);
        assert_eq!(put(None::<&str>), None);
        assert_eq!(put(Some(3u8)).as_deref(), Some("3"));
    }
}
