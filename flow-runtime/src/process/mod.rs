//! Process functions: what no other operator does, with state, timers and a second output.
//!
//! A [`KeyedProcessFunction`] is given every record of a keyed stream together with the [`State`] of its key, and sets
//! timers; a [`ProcessFunction`] is given the records of any stream. Both emit any number of records, at any time that
//! they are called, to two outputs.
//!
//! A keyed function is called where the key's state is, and what it emits is kept until the batch is done: what follows
//! it is a loop of its own, as behind windows, since it runs for timers too ([`keyed`]).

pub(crate) mod broadcast;
pub(crate) mod co;
mod connected;
mod context;
mod function;
pub(crate) mod keyed;
pub(crate) mod plain;
pub mod state;

pub use broadcast::BroadcastProcess;
pub use co::{CoProcess, KeyedCoProcess};
pub use connected::{
    BroadcastContext, CoContext, CoProcessFunction, KeyedBroadcastContext, KeyedBroadcastProcessFunction,
    KeyedCoContext, KeyedCoProcessFunction,
};
pub use context::{Context, KeyedContext, PlainContext, ProcessContext, SetsTimers};
pub use function::{
    Becomes, KeyedProcessFunction, NoSide, Once, ProcessFunction, TimeDomain, Timer, WithoutSide,
};
pub use keyed::{KeyFor, KeyedProcess};
pub use plain::Process;
pub use state::{
    AggregatingState, ListState, MapState, Reducer, ReducingState, State, Ttl, TtlUpdate, TtlVisibility,
    ValueState,
};

#[cfg(test)]
mod tests;
