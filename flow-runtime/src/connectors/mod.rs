//! Sources and sinks for what is out there. They know the traits in [`source`](crate::source) and
//! [`sink`](crate::sink), never the engine.

pub mod collection;
pub mod file;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod print;
pub mod socket;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub mod sql;

mod text;

pub use text::{Lines, TextBatch};

#[cfg(test)]
mod speed;
