//! Where records come from.
//!
//! [`Source`] describes what to read, a [`SourceReader`] reads it on a tokio task, in [`Batch`]es, and the
//! source's operator on the worker runs the fused chain over each batch.

mod driver;
mod feed;
pub(crate) mod splits;
mod traits;

pub(crate) use driver::{ChainSource, SourceDriver, Step};
pub use traits::{
    Batch, Bounded, Fetched, Progress, Rewindable, Runs, Source, SourceContext, SourceReader, Split,
};
