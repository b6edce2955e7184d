//! What the two halves of a subtask know of each other, and the connections that they hand over.
//!
//! In MariaDB a prepared transaction stays with its connection until that is closed, and while it is being closed nobody
//! should touch it (see [`Control::end`](super::control::Control::end)). So the connection is kept open, and the committer
//! commits on it. That is a short cut and not a condition: the handle alone will do, after a crash for example.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use super::TransactionId;
use crate::connectors::sql::connection::Connection;

/// Shared by the writer and the committer of a subtask.
#[derive(Default)]
pub(super) struct Live {
    /// The last checkpoint at which something was prepared.
    prepared: AtomicU64,
    /// The last one that is committed.
    committed: AtomicU64,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    /// Those that still hold the transaction that they prepared.
    holding: Vec<(TransactionId, Connection)>,
    /// One that holds none any more.
    spare: Option<Connection>,
}

impl Live {
    /// A transaction is prepared, and may be held by its connection.
    pub(super) fn prepared(&self, checkpoint: u64, id: &TransactionId, holder: Option<Connection>) {
        self.prepared.fetch_max(checkpoint, Ordering::SeqCst);
        if let Some(connection) = holder {
            self.with(|connections| connections.holding.push((id.clone(), connection)));
        }
    }

    pub(super) fn committed(&self, checkpoint: u64) {
        self.committed.fetch_max(checkpoint, Ordering::SeqCst);
    }

    /// Whether a transaction of an earlier epoch still waits for its checkpoint.
    pub(super) fn is_pending(&self) -> bool {
        self.prepared.load(Ordering::SeqCst) > self.committed.load(Ordering::SeqCst)
    }

    /// The connection that holds a transaction. Whoever drops it lets go of the transaction.
    pub(super) fn take_holder(&self, id: &TransactionId) -> Option<Connection> {
        self.with(|connections| {
            let index = connections.holding.iter().position(|(held, _)| held == id)?;
            Some(connections.holding.swap_remove(index).1)
        })
    }

    pub(super) fn put_spare(&self, connection: Connection) {
        self.with(|connections| connections.spare = Some(connection));
    }

    pub(super) fn take_spare(&self) -> Option<Connection> {
        self.with(|connections| connections.spare.take())
    }

    fn with<R>(&self, change: impl FnOnce(&mut Connections) -> R) -> R {
        change(&mut self.connections.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("prepared", &self.prepared).field("committed", &self.committed).finish()
    }
}
