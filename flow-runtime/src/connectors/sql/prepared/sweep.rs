//! Rolling back what earlier attempts of a sink left: no checkpoint that counts carries it, and it holds locks.

use super::{
    control::{Control, End},
    marker,
    owner::Owner,
};
use crate::connectors::sql::{error::SqlError, url::DatabaseUrl};

/// Rolls back the prepared transactions of other attempts, and tells how many there were. Everything that the restored
/// checkpoint carried must be committed before.
///
/// A transaction may come late: its process was killed while the server was still preparing it. So this is done at the
/// start, from time to time, and whenever a lock is not to be had.
pub(super) async fn sweep(control: &mut Control, owner: &Owner) -> Result<usize, SqlError> {
    let found = control.list(&owner.prefix()).await?;
    let orphans: Vec<_> = found.into_iter().filter(|found| found.id.attempt != owner.attempt).collect();
    if orphans.is_empty() {
        return Ok(0);
    }
    // In this order. Who owns the sink now has owned it when the list was made, so none of the list is of an attempt that
    // came after this one.
    if !marker::owned(&mut control.connection, owner).await? {
        return Err(SqlError::Setup(owner.fenced()));
    }
    for orphan in &orphans {
        tracing::info!(sink = owner.sink, transaction = %orphan.id, "rolling back what an earlier attempt left");
        control.end(&orphan.id, End::Rollback).await?;
    }
    Ok(orphans.len())
}

/// As [`sweep`], on a connection of its own.
pub(super) async fn sweep_at(url: &DatabaseUrl, owner: &Owner) -> Result<usize, SqlError> {
    sweep(&mut Control::open(url).await?, owner).await
}
