//! What a process function keeps of each key.
//!
//! A struct whose fields are [`ValueState`], [`ListState`], [`MapState`], [`ReducingState`], [`AggregatingState`], or
//! other such structs, under `#[derive(State)]`. All of it is one entry of the operator's table: a checkpoint holds it
//! together with the key's timers.

mod aggregating;
mod field;
mod list;
mod map;
mod reducing;
pub(crate) mod ttl;
mod value;

pub use aggregating::AggregatingState;
pub(super) use field::Bytes;
pub use field::{StateField, Stored, state_field};
pub use list::ListState;
pub use map::MapState;
pub use reducing::{Reducer, ReducingState};
pub use ttl::{Ttl, TtlUpdate, TtlVisibility};
pub use value::ValueState;

use crate::{error::BoxError, time::Timestamp};

/// What is kept of a key: a struct of states, by `#[derive(State)]`.
///
/// ```
/// use flow::{ListState, State, ValueState};
///
/// #[derive(State)]
/// struct Account {
///     balance: ValueState<i64>,
///     /// Each one is forgotten after an hour.
///     #[state(ttl = "1h")]
///     recent: ListState<i64>,
/// }
/// # fn main() {}
/// ```
///
/// A key of which nothing is left (no field holds anything, and there is no timer) is forgotten.
///
/// # Over time
/// A checkpoint holds fields by their names. A program that adds a field finds it empty in what it restores, and one
/// that has lost a field passes over what is stored of it. To rename a field is to lose it.
///
/// # Time to live
/// With `#[state(ttl = "1h")]` a value, each element of a list and each entry of a map vanishes when it has not been
/// written for an hour of processing time. Durations are written as in the rest of a pipeline: `500ms`, `10s`, `5m`,
/// `1h`, `7d`. What has vanished is removed when the clock gets there, whether the key sees records or not, and is in no
/// later checkpoint. Two more settings say it otherwise:
///
/// - `update = on_read_and_write`: to be read is to live on, too (the default is `on_write`);
/// - `visibility = return_expired_if_not_cleaned_up`: what is over is seen until it is removed, which is cheaper by
///   nothing but may be wanted (the default is `never_return_expired`).
///
/// The clock goes on while a job does not run. A field that gets its `ttl` in a later version of the program holds what
/// is restored for as long as if it were written then.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be keyed state",
    label = "this is not known to be kept per key",
    note = "keyed state is made of `ValueState<T>`, `ListState<T>`, `MapState<K, V>`, `ReducingState<T, R>` and `AggregatingState<In, A>`: put a plain value into a `ValueState<..>`, and derive `flow::State` for a struct of them"
)]
pub trait State: Sized + Send + 'static {
    /// Whether anything in it vanishes by itself.
    #[doc(hidden)]
    const EXPIRES: bool;
    #[doc(hidden)]
    fn empty(ttl: Option<&'static Ttl>) -> Self;
    #[doc(hidden)]
    fn copy(&self) -> Self;
    /// Whether there is nothing in it.
    #[doc(hidden)]
    fn holds_nothing(&self) -> bool;
    /// When to clean it up; perhaps a little too early.
    #[doc(hidden)]
    fn ends(&self) -> Option<Timestamp>;
    /// Removes what is over.
    #[doc(hidden)]
    fn clean(&mut self, now: Timestamp);
    #[doc(hidden)]
    fn encode(&self) -> Result<Vec<u8>, BoxError>;
    #[doc(hidden)]
    fn decode(bytes: &[u8], ttl: Option<&'static Ttl>) -> Result<Self, BoxError>;
}

/// Nothing is kept, but perhaps timers.
impl State for () {
    const EXPIRES: bool = false;
    fn empty(_: Option<&'static Ttl>) -> Self {}
    fn copy(&self) -> Self {}
    fn holds_nothing(&self) -> bool {
        true
    }
    fn ends(&self) -> Option<Timestamp> {
        None
    }
    fn clean(&mut self, _: Timestamp) {}
    fn encode(&self) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }
    fn decode(_: &[u8], _: Option<&'static Ttl>) -> Result<Self, BoxError> {
        Ok(())
    }
}

/// A state as it is stored, whole.
pub(super) fn bytes_of<S: State>(state: &S) -> Result<Bytes<'static>, BoxError> {
    Ok(Bytes(state.encode()?.into()))
}

/// Reads a state.
pub(super) fn state_of<S: State>(bytes: &[u8]) -> Result<S, BoxError> {
    S::decode(bytes, None)
}

/// As everything in a checkpoint is written: structs with the names of their fields.
fn to_bytes<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, BoxError> {
    let mut bytes = Vec::new();
    let mut serializer = rmp_serde::Serializer::new(&mut bytes).with_struct_map().with_human_readable();
    value.serialize(&mut serializer)?;
    Ok(bytes)
}

fn from_bytes<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, BoxError> {
    let mut deserializer = rmp_serde::Deserializer::new(bytes).with_human_readable();
    Ok(T::deserialize(&mut deserializer)?)
}

#[cfg(test)]
mod tests;
