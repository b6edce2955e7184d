//! Operators with several outputs, and process functions: pipelines at several parallelisms, with exact outputs.

#[path = "../common/mod.rs"]
mod common;
mod connected;
mod keyed;
mod outputs;
