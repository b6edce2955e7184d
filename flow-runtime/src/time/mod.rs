//! Event time: timestamps, watermarks, and how long is how long.

mod offset;
mod timestamp;
mod watermark;

pub use offset::Offset;
pub use timestamp::Timestamp;
pub(crate) use timestamp::{floor, millis};
pub use watermark::Watermark;
