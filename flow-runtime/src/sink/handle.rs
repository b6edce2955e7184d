//! Transaction handles: what names a transaction after its process is gone.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::error::BoxError;

mod describe;

/// What names a transaction after its process is gone: it is written to the checkpoint, and used to commit after a
/// crash.
///
/// Derived for structs and enums whose fields serde can write and read back. A live connection is no handle: it dies
/// with the process.
///
/// ```
/// use flow::TransactionHandle;
///
/// #[derive(TransactionHandle)]
/// struct Prepared {
///     gid: String,
/// }
/// # fn main() {}
/// ```
///
/// Handles are stored in an envelope that carries their version, `1` unless `#[handle(version = ..)]` says otherwise,
/// and their fields by name. A job that was upgraded reads what its predecessor left:
///
/// - a field that was added gets its default with `#[handle(default)]`, and one that was removed is passed over;
/// - a handle that became another type says `#[handle(version = 2, from = Old)]`: older envelopes are read as `Old`,
///   and converted by `From<Old>`;
/// - one of a version that this program does not know is refused.
///
/// ```
/// use flow::TransactionHandle;
///
/// #[derive(TransactionHandle)]
/// struct PreparedV1 {
///     number: u64,
/// }
///
/// #[derive(TransactionHandle)]
/// #[handle(version = 2, from = PreparedV1)]
/// struct Prepared {
///     gid: String,
///     #[handle(default)]
///     rows: u64,
/// }
///
/// impl From<PreparedV1> for Prepared {
///     fn from(old: PreparedV1) -> Self {
///         Prepared { gid: format!("gid-{}", old.number), rows: 0 }
///     }
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the handle of a transaction",
    label = "this would have to outlive the process",
    note = "a handle is written to the checkpoint and used to commit after a crash: keep the live connection in `Live` or in the writer, and in the handle only what names the transaction, with `#[derive(TransactionHandle)]`"
)]
pub trait TransactionHandle: Send + Sync + Sized + 'static {
    #[doc(hidden)]
    fn to_envelope(&self) -> Result<Envelope<'static>, BoxError>;
    #[doc(hidden)]
    fn from_envelope(envelope: Envelope<'_>) -> Result<Self, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<T: Enveloped> TransactionHandle for T {
    fn to_envelope(&self) -> Result<Envelope<'static>, BoxError> {
        self.put()
    }
    fn from_envelope(envelope: Envelope<'_>) -> Result<Self, BoxError> {
        T::get(envelope)
    }
}

/// What the derive implements. A trait of its own, so that the compiler does not list every handle that there is when
/// something is none.
#[doc(hidden)]
pub trait Enveloped: Send + Sync + Sized + 'static {
    fn put(&self) -> Result<Envelope<'static>, BoxError>;
    fn get(envelope: Envelope<'_>) -> Result<Self, BoxError>;
}

/// Writes a handle as it is kept in a checkpoint.
///
/// # Errors
/// When one of its fields cannot be serialized.
pub fn encode_handle<H: TransactionHandle>(handle: &H) -> Result<Vec<u8>, BoxError> {
    Ok(rmp_serde::to_vec(&handle.to_envelope()?)?)
}

/// Reads a handle, of this version or an older one.
///
/// # Errors
/// When the bytes are no handle, or one of a later version.
pub fn decode_handle<H: TransactionHandle>(bytes: &[u8]) -> Result<H, BoxError> {
    H::from_envelope(rmp_serde::from_slice(bytes)?)
}

/// What a handle says, in words, whatever its type: for people who look into a checkpoint.
#[must_use]
pub fn describe_handle(bytes: &[u8]) -> String {
    match rmp_serde::from_slice::<Envelope<'_>>(bytes) {
        Ok(envelope) => envelope.to_string(),
        Err(_) => format!("{} bytes that are no handle", bytes.len()),
    }
}

/// A handle on its way to the checkpoint or back.
#[doc(hidden)]
#[derive(Debug, Serialize, Deserialize)]
pub struct Envelope<'a> {
    version: u32,
    /// Of an enum.
    variant: Option<Cow<'a, str>>,
    #[serde(borrow)]
    fields: Vec<(Cow<'a, str>, Octets<'a>)>,
}

impl Envelope<'static> {
    #[must_use]
    pub fn new(version: u32, variant: Option<&'static str>) -> Self {
        Envelope { version, variant: variant.map(Cow::Borrowed), fields: Vec::new() }
    }

    /// Adds a field.
    ///
    /// # Errors
    /// When it cannot be serialized.
    pub fn put<T>(&mut self, codec: Codec<T>, name: &'static str, field: &T) -> Result<(), BoxError> {
        let bytes = (codec.encode)(field).map_err(|e| format!("field `{name}`: {e}"))?;
        self.fields.push((Cow::Borrowed(name), Octets(Cow::Owned(bytes))));
        Ok(())
    }
}

impl Envelope<'_> {
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    #[must_use]
    pub fn variant(&self) -> &str {
        self.variant.as_deref().unwrap_or_default()
    }

    /// # Errors
    /// When the handle is of a later version than the program.
    pub fn check(&self, known: u32) -> Result<(), BoxError> {
        if self.version <= known {
            return Ok(());
        }
        Err(format!(
            "it is of version {}, and this program knows handles up to version {known}: resume with the program that wrote the checkpoint, or a later one",
            self.version
        )
        .into())
    }

    /// Takes a field out.
    ///
    /// # Errors
    /// When it is not there, or of another type.
    pub fn get<T>(&self, codec: Codec<T>, name: &str) -> Result<T, BoxError> {
        self.find(codec, name)?.ok_or_else(|| {
            format!("it has no field `{name}`: was that added? then mark it `#[handle(default)]`").into()
        })
    }

    /// As [`get`](Self::get), but a field that is not there gets its default.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn get_or_default<T: Default>(&self, codec: Codec<T>, name: &str) -> Result<T, BoxError> {
        Ok(self.find(codec, name)?.unwrap_or_default())
    }

    fn find<T>(&self, codec: Codec<T>, name: &str) -> Result<Option<T>, BoxError> {
        let Some((_, bytes)) = self.fields.iter().find(|(field, _)| field == name) else { return Ok(None) };
        Ok(Some((codec.decode)(&bytes.0).map_err(|e| format!("field `{name}`: {e}"))?))
    }

    /// # Errors
    /// Always: the enum has no such variant.
    pub fn unknown_variant<T>(&self) -> Result<T, BoxError> {
        Err(format!("it is a `{}`, which this program does not know", self.variant()).into())
    }
}

impl fmt::Display for Envelope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.variant())?;
        for (i, (name, Octets(bytes))) in self.fields.iter().enumerate() {
            let separator = if i == 0 && self.variant.is_none() { "" } else { " " };
            write!(f, "{separator}{name}={}", describe::text(bytes))?;
        }
        Ok(())
    }
}

/// Bytes that serde writes as bytes, and not as a list of numbers.
#[derive(Debug)]
struct Octets<'a>(Cow<'a, [u8]>);

impl Serialize for Octets<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Octets<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Octets(Cow::Borrowed(<&[u8]>::deserialize(deserializer)?)))
    }
}

/// How a field is written and read: looked up in one place per field, so that a field which cannot be stored is one
/// error.
#[derive(Debug)]
pub struct Codec<T> {
    encode: fn(&T) -> Result<Vec<u8>, BoxError>,
    decode: fn(&[u8]) -> Result<T, BoxError>,
}

impl<T> Clone for Codec<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Codec<T> {}

/// The codec of a field.
#[must_use]
pub const fn codec<T: Durable>() -> Codec<T> {
    Codec { encode: T::encode, decode: T::decode }
}

/// What can be a field of a handle.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of the handle of a transaction",
    label = "this dies with the process",
    note = "a handle is written to the checkpoint and used to commit after a crash: keep what is alive in `Live` or in the writer, and in the handle only what names the transaction",
    note = "a type of your own needs `#[derive(serde::Serialize, serde::Deserialize)]`"
)]
pub trait Durable: Sized + Send + Sync + 'static {
    // Methods instead of supertraits: rustc reports each supertrait that is missing, and not this trait.
    #[doc(hidden)]
    fn encode(&self) -> Result<Vec<u8>, BoxError>;
    #[doc(hidden)]
    fn decode(bytes: &[u8]) -> Result<Self, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Durable for T {
    fn encode(&self) -> Result<Vec<u8>, BoxError> {
        Ok(rmp_serde::to_vec_named(self)?)
    }
    fn decode(bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(rmp_serde::from_slice(bytes)?)
    }
}

/// Of a sink without transactions.
impl Enveloped for () {
    fn put(&self) -> Result<Envelope<'static>, BoxError> {
        Ok(Envelope::new(1, None))
    }
    fn get(envelope: Envelope<'_>) -> Result<Self, BoxError> {
        envelope.check(1)
    }
}

/// A name is a handle.
impl Enveloped for String {
    fn put(&self) -> Result<Envelope<'static>, BoxError> {
        let mut envelope = Envelope::new(1, None);
        envelope.put(codec(), "name", self)?;
        Ok(envelope)
    }
    fn get(envelope: Envelope<'_>) -> Result<Self, BoxError> {
        envelope.check(1)?;
        envelope.get(codec(), "name")
    }
}

#[cfg(test)]
mod tests;
