//! The benchmark Nexmark: events of an auction site, and queries over them as pipelines, each with an oracle.

pub(crate) mod checksum;
pub(crate) mod generate;
pub(crate) mod model;
pub(crate) mod queries;
pub(crate) mod source;
