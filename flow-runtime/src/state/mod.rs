//! State, in memory: of keys, and of operators.

mod aggregate;
mod ahead;
mod chunks;
mod key;
mod operator;
mod port;
mod shard;
mod table;
mod timed;
mod track;

pub use aggregate::Sum;
pub(crate) use aggregate::overflow;
pub use ahead::{Ahead, Spot};
pub use key::{Key, KeyGroup, StoredKey, StoredKeyPart};
pub(crate) use key::{KeyGroups, hash};
pub(crate) use operator::{Held, Items, OperatorPort, Share};
pub use operator::{OperatorState, OperatorStateMut, Redistribution, StateItems};
pub(crate) use port::StatePort;
pub use table::{Keyed, StateValue, Table};
pub(crate) use track::Left;

#[cfg(test)]
mod tests;
