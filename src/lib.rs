//! Stream processing for Rust.

#![forbid(unsafe_code)]

pub use flow_macros::{Key, pipeline};
pub use flow_runtime::{
    connectors::*,
    error::{BoxError, Error},
    job::{Definition, Job},
    sink, source,
    state::{Key, Sum},
    ops::run,
    worker::{self, Config, Ending, Restart, Summary},
};

#[doc(hidden)]
pub use flow_runtime::private as __private;
