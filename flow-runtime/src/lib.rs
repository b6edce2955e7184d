//! The runtime of `flow`.

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod connectors;
pub mod error;
pub mod sink;
pub mod source;
