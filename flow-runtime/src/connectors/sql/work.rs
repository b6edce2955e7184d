//! What is done with the rows of an epoch.

use std::future::Future;

use super::{
    buffer::StagingBuffer,
    connection::Connection,
    error::{Fault, SqlError},
    handle::Staged,
    transaction::Transaction,
    url::Backend,
};

/// What a SQL sink does with its rows: insert them, upsert them, run a statement for each, or call a closure.
pub trait Work: Send + Sync + 'static {
    /// What the worker fills.
    type Buffer: StagingBuffer;

    /// An empty buffer.
    #[doc(hidden)]
    fn buffer(&self, backend: Option<Backend>) -> Self::Buffer;

    /// What it writes to, for messages.
    #[doc(hidden)]
    fn place(&self) -> String;

    /// The only table that it writes to, where that is known.
    #[doc(hidden)]
    fn table(&self) -> Option<&str> {
        None
    }

    #[doc(hidden)]
    fn check(&self, internal: &mut Internal<'_>) -> impl Future<Output = Result<(), SqlError>> + Send;

    #[doc(hidden)]
    fn apply(
        &self,
        tx: &mut Transaction,
        staged: &Staged,
        how: How,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether the transaction may have been ended by code that is not ours.
    #[doc(hidden)]
    const FOREIGN: bool;
}

/// Hides the connection in a public signature.
#[doc(hidden)]
pub struct Internal<'a>(pub(super) &'a mut Connection);

/// Hides the fault in a public signature.
#[doc(hidden)]
#[derive(Debug)]
pub struct Failure(pub(super) Fault);

impl<E: Into<Fault>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(error.into())
    }
}

/// How rows are applied.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// As fast as it goes.
    Batched,
    /// At most so many rows at a time from this one on, and those before it as fast as it goes: to find the one that is
    /// refused.
    Narrow { from: usize, most: usize },
}
