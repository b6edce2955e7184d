//! What has to be so before the first row: refused here, with a remedy, instead of at the first checkpoint.

use super::{
    control::{Control, End, no_prepared_transactions},
    marker::{self, PROBE, TABLE},
    open,
    owner::Owner,
};
use crate::connectors::sql::{
    connection::Connection,
    error::{Class, SqlError, classify},
    retry::Backoff,
    url::{Backend, DatabaseUrl},
};

/// How often the probe is tried where the server is merely busy.
const TRIES: u32 = 8;

/// Whether this kind of database can do it at all.
pub(super) fn backend(url: &DatabaseUrl) -> Result<(), SqlError> {
    if url.backend() == Some(Backend::Sqlite) { Err(no_prepared_transactions()) } else { Ok(()) }
}

/// Its version and its settings.
pub(super) async fn server(connection: &mut Connection, parallelism: usize) -> Result<(), SqlError> {
    let _ = parallelism;
    match connection.backend() {
        #[cfg(feature = "postgres")]
        Backend::Postgres => super::postgres::check(connection, parallelism).await,
        #[cfg(feature = "mysql")]
        Backend::Mysql => {
            super::mysql::check(connection).await?;
            // Ends the transaction that a mere read may have begun.
            Ok(connection.batch("COMMIT").await?)
        }
        #[allow(unreachable_patterns, reason = "reachable when a feature is off")]
        _ => Err(no_prepared_transactions()),
    }
}

/// Prepares a transaction with nothing but a marker, finds it from another connection, and rolls it back: whatever is
/// missing, a privilege or a free slot, shows now.
pub(super) async fn probe(
    url: &DatabaseUrl,
    owner: &Owner,
    mut control: Option<Control>,
) -> Result<(), SqlError> {
    let mut backoff = Backoff::new();
    loop {
        match try_probe(url, owner, control.take()).await {
            Err(error) if classify(&error) != Class::Permanent && backoff.tries() < TRIES => {
                backoff.wait().await;
            }
            Err(error) => {
                let told = error.to_string();
                let remedy = match url.backend() {
                    #[cfg(feature = "postgres")]
                    Some(Backend::Postgres) => super::postgres::explain(&told),
                    #[cfg(feature = "mysql")]
                    Some(Backend::Mysql) => super::mysql::explain(&told),
                    _ => "",
                };
                return Err(SqlError::Setup(format!(
                    "cannot use prepared transactions here: {told}{remedy}"
                )));
            }
            Ok(()) => return Ok(()),
        }
    }
}

async fn try_probe(url: &DatabaseUrl, owner: &Owner, control: Option<Control>) -> Result<(), SqlError> {
    let connection = open::connect(url).await?;
    let (connection, id) = open::prepare_empty(connection, owner, PROBE).await?;
    let mut control = match control {
        Some(control) => control,
        None => Control::open(url).await?,
    };
    let listed = control.is_prepared(&id).await?;
    match connection {
        // It holds the transaction, and need not be closed to end it.
        Some(connection) if connection.backend() == Backend::Mysql => {
            Control { url: url.clone(), connection }.try_end(&id, End::Rollback).await?;
        }
        _ => {
            control.end(&id, End::Rollback).await?;
        }
    }
    if !listed {
        return Err(SqlError::Setup(format!(
            "a transaction that was prepared is not in the list of prepared transactions: {id}"
        )));
    }
    if !marker::owned(&mut control.connection, owner).await? {
        return Err(SqlError::Setup(format!("{} (by the table `{TABLE}`)", owner.fenced())));
    }
    Ok(())
}
