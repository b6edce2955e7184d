//! What the checkpoint carries: the name of a prepared transaction, and where its marker is.

use flow_macros::TransactionHandle;
use serde::{Deserialize, Serialize};

use super::{TransactionId, owner::Owner};

/// Names a prepared transaction: the handle of a SQL sink that uses prepared transactions.
#[derive(Clone, Debug, PartialEq, Eq, TransactionHandle)]
pub struct PreparedTransaction {
    pub(super) id: TransactionId,
    pub(super) marker: Marker,
    pub(super) rows: u64,
}

/// The key of a marker, and the attempt that wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    pub(super) job: String,
    pub(super) sink: String,
    pub(super) subtask: usize,
    pub(super) epoch: u64,
    pub(super) attempt: u64,
}

impl PreparedTransaction {
    pub(super) fn new(id: TransactionId, marker: Marker, rows: u64) -> Self {
        PreparedTransaction { id, marker, rows }
    }

    /// How many rows it holds.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What the database calls it.
    #[must_use]
    pub fn id(&self) -> &TransactionId {
        &self.id
    }
}

impl Marker {
    pub(super) fn new(owner: &Owner, subtask: usize, epoch: u64) -> Self {
        let Owner { job, sink, attempt } = owner.clone();
        Marker { job, sink, subtask, epoch, attempt }
    }

    /// For messages.
    pub(super) fn place(&self) -> String {
        format!(
            "sink `{}` of job `{}`, checkpoint {}, subtask {}",
            self.sink, self.job, self.epoch, self.subtask
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{decode_handle, encode_handle};

    #[test]
    fn a_handle_survives_the_checkpoint() {
        let owner = Owner { job: "shop".into(), sink: "orders.sink".into(), attempt: u64::MAX };
        let id = TransactionId::new(&owner, 3, 7, 12);
        let handle = PreparedTransaction::new(id, Marker::new(&owner, 3, 7), 1000);
        let encoded = encode_handle(&handle).unwrap();
        assert_eq!(decode_handle::<PreparedTransaction>(&encoded).unwrap(), handle);
    }
}
