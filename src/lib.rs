//! Stream processing for Rust.

#![forbid(unsafe_code)]

pub use flow_macros::{Key, pipeline};
pub use flow_runtime::{
    checkpoint,
    connectors::*,
    error::{BoxError, Error},
    job::{Definition, Job},
    ops::run,
    plan, sink, source,
    state::{Key, Sum},
    worker::{self, Config, Ending, Restart, Summary},
};

#[doc(hidden)]
pub use flow_runtime::private as __private;
