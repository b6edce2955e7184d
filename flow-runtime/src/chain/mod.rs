//! Fused operator chains: the loop is the macro's, everything around it is here.
//!
//! Generated code describes each chain to [`Wiring`]: its source or inputs, the state, sinks and outputs that its loop
//! uses, and the loop itself as one closure over a batch. Types end at the chain's edge: from there on the engine sees
//! boxed closures and parcels, one virtual call per batch.

mod edge;
mod operator;
mod position;
mod work;
mod wiring;

pub use edge::{Edge, Edges, Output, Outgoing, Parcel, Received};
pub(crate) use edge::{Credit, Partition};
pub(crate) use operator::build;
pub use position::{At, ChainError, Skipped};
pub(crate) use position::Fault;
pub use wiring::{Chain, Wiring};
pub(crate) use wiring::{ChainParts, Environment};
pub(crate) use work::Work;
