//! Sources without an outside: elements of a vector, an iterator, a range of numbers, a generator.
//!
//! For tests, examples and benchmarks.

mod elements;
mod generate;
mod iterate;
mod range;
mod resume;

pub use elements::{Elements, ElementsBatch, ElementsReader, collection};
pub use generate::{Ending, Endless, Generate, GenerateBatch, GenerateReader, GenerateSplit, generate};
pub use iterate::{Iterate, IterateBatch, IterateReader, IterateSplit, iterate};
pub use range::{Range, RangeBatch, RangeReader, RangeSplit, range};

/// How many records a batch holds: enough that a batch costs nothing, few enough that slow closures do not make it
/// long.
const BATCH_RECORDS: u64 = 16_384;

/// Into how many splits a source of known size is cut, so that every subtask has about the same share.
const SPLITS: u64 = 64;

#[cfg(test)]
mod tests;
