//! Keyed state, in memory.

mod aggregate;
mod key;
mod table;

pub use aggregate::Sum;
pub use key::{Key, KeyGroup, StoredKey, StoredKeyPart};
pub(crate) use key::{KeyGroups, hash};
pub(crate) use table::StatePort;
pub use table::{Keyed, StateValue, Table};
