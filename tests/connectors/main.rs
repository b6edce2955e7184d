//! What the engine asks of connectors and pipelines of them: in this process, without servers.

mod alignment;
mod lookup;
