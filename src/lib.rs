//! Stream processing for Rust.
