//! Event time and processing time: timestamps, watermarks, the clock, and how long is how long.

mod clock;
mod offset;
mod timestamp;
mod watermark;

pub use clock::Clock;
pub(crate) use clock::Listener;
pub use offset::Offset;
pub use timestamp::Timestamp;
pub(crate) use timestamp::{floor, millis};
pub use watermark::Watermark;
