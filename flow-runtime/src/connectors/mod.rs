//! Sources and sinks for what is out there. They know the traits in [`source`](crate::source) and
//! [`sink`](crate::sink), never the engine.

#[cfg(feature = "kafka")]
pub mod kafka;
