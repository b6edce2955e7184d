//! The runtime of `flow`. Follow a record through the folders:
//!
//! [`source`] reads splits in batches; [`chain`] runs the fused loop over each batch; `exchange` is the edge at a
//! chain's end, where records are owned, sealed into parcels and sent to the subtask of their key; [`state`] keeps a
//! value per key, [`window`] one per key and window of [`time`], [`process`] whatever a function of the user's keeps; [`sink`] takes what comes out. [`worker`] runs all of it, [`checkpoint`] remembers it.
//! [`connectors`] are the sources and sinks for what is out there.

#![forbid(unsafe_code)]

// The derives speak of `::flow`, as in every program that uses them.
extern crate self as flow;

pub mod async_io;
pub mod chain;
pub mod checkpoint;
pub mod connectors;
pub mod error;
mod failpoint;
pub mod job;
pub mod join;
pub mod ops;
pub mod plan;
#[doc(hidden)]
pub mod private;
pub mod process;
#[doc(hidden)]
pub use private as __private;
pub mod record;
pub mod sink;
pub mod source;
pub mod split;
pub mod state;
pub mod testing;
pub mod time;
mod timers;
pub mod watermark;
pub mod window;
pub mod worker;
