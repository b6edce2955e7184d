//! Sources and sinks for what is out there. They know the traits in [`source`](crate::source) and
//! [`sink`](crate::sink), never the engine.

pub mod collection;
pub mod file;
pub mod print;
pub mod socket;

mod text;

pub use text::{Lines, TextBatch};

#[cfg(test)]
mod speed;
