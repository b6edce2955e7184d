//! A closure for each batch of records.

use std::{future::Future, sync::Arc};

use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    buffer::RecordBuffer,
    error::{Fault, SqlError},
    handle::Staged,
    transaction::Transaction,
    url::Backend,
    work::{Failure, How, Internal, Work},
};
use crate::error::BoxError;

/// The most records that a closure is given at once, unless it asks for another number.
pub(super) const BATCH_RECORDS: usize = 10_000;

type Call<R> =
    dyn for<'a> Fn(&'a mut Transaction, &'a [R]) -> BoxFuture<'a, Result<(), BoxError>> + Send + Sync;

/// Calls a closure for each batch, see [`apply`](super::apply).
pub struct Batches<R> {
    call: Arc<Call<R>>,
    pub(super) most: usize,
}

impl<R: 'static> Batches<R> {
    pub(super) fn new<F>(call: F) -> Self
    where
        F: for<'t, 'r> AsyncFnOnce(&'t mut Transaction, &'r [R]) -> Result<(), BoxError>
            + for<'t, 'r> BatchFn<&'t mut Transaction, &'r [R], Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
        R: Sync,
    {
        let call = erase(move |tx, records| {
            let call = call.clone();
            Box::pin(async move { call(tx, records).await })
        });
        Batches { call, most: BATCH_RECORDS }
    }
}

/// Tells the compiler the closure's lifetimes.
fn erase<R>(
    call: impl for<'a> Fn(&'a mut Transaction, &'a [R]) -> BoxFuture<'a, Result<(), BoxError>>
    + Send
    + Sync
    + 'static,
) -> Arc<Call<R>> {
    Arc::new(call)
}

impl<R> Clone for Batches<R> {
    fn clone(&self) -> Self {
        Batches { call: Arc::clone(&self.call), most: self.most }
    }
}

impl<R> std::fmt::Debug for Batches<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("most", &self.most).finish_non_exhaustive()
    }
}

/// An `async` closure or function over a transaction and a batch, whose future may move between threads. Implemented for
/// all of them; you never name it.
///
/// It says what `AsyncFnOnce` alone cannot say yet: that the future is `Send`.
pub trait BatchFn<Tx, Rows>:
    AsyncFnOnce(Tx, Rows) -> Result<(), BoxError> + FnOnce(Tx, Rows) -> <Self as BatchFn<Tx, Rows>>::Future
{
    /// What it returns.
    type Future: Future<Output = Result<(), BoxError>>;
}

impl<F, Fut, Tx, Rows> BatchFn<Tx, Rows> for F
where
    F: AsyncFnOnce(Tx, Rows) -> Result<(), BoxError> + FnOnce(Tx, Rows) -> Fut,
    Fut: Future<Output = Result<(), BoxError>>,
{
    type Future = Fut;
}

impl<R> Work for Batches<R>
where
    R: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    type Buffer = RecordBuffer<R>;
    const FOREIGN: bool = true;

    fn buffer(&self, _: Option<Backend>) -> RecordBuffer<R> {
        RecordBuffer::new()
    }

    fn place(&self) -> String {
        "the closure".to_owned()
    }

    async fn check(&self, _: &mut Internal<'_>) -> Result<(), SqlError> {
        Ok(())
    }

    async fn apply(&self, tx: &mut Transaction, staged: &Staged, _: How) -> Result<(), Failure> {
        let encoded = staged.records()?;
        let mut start = 0;
        while start < encoded.len() {
            let end = encoded.len().min(start + self.most);
            let mut records: Vec<R> = Vec::with_capacity(end - start);
            for (row, record) in (start..).zip(&encoded[start..end]) {
                records.push(rmp_serde::from_slice(record).map_err(|cause| {
                    let why =
                        format!("the record cannot be read back as the type that the closure takes: {cause}");
                    Fault::at(row..row + 1, SqlError::Record(why))
                })?);
            }
            (self.call)(tx, &records).await.map_err(|error| Fault::at(start..end, error))?;
            start = end;
        }
        Ok(())
    }
}
