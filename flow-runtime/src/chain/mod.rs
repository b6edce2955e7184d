//! Fused operator chains: the loop is the macro's, everything around it is here.
//!
//! Generated code describes each chain to [`Wiring`]: its source or inputs, the state, sinks and outputs that its loop
//! uses, and the loop itself as one closure over a batch. Types end at the chain's edge: from there on the engine sees
//! boxed closures and parcels, one virtual call per batch.

mod disjoint;
mod edge;
mod environment;
mod functions;
mod operator;
mod position;
mod state;
mod times;
mod wiring;
mod work;

pub(crate) use edge::Partition;
pub use edge::{Edge, Edges, Outgoing, Output, Parcel, Received, Stream};
pub(crate) use environment::Environment;
pub(crate) use operator::{Built, Part, build};
pub(crate) use position::Fault;
pub use position::{At, ChainError, Failed, Skipped};
pub(crate) use state::{OperatorStateParts, OperatorWrite};
pub use wiring::{Chain, Wiring};
pub(crate) use work::Work;

#[cfg(test)]
mod tests;
