//! Keyed state, in memory.

mod aggregate;
mod key;
mod port;
mod shard;
mod table;
mod timed;
mod track;

pub use aggregate::Sum;
pub(crate) use aggregate::overflow;
pub use key::{Key, KeyGroup, StoredKey, StoredKeyPart};
pub(crate) use key::{KeyGroups, hash};
pub(crate) use port::StatePort;
pub use table::{Keyed, StateValue, Table};

#[cfg(test)]
mod tests;
