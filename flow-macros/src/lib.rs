//! The `#[pipeline]` macro.
