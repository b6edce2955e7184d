//! What arrives at a chain, by epoch.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    chain::{Parcel, edge::Credits},
    checkpoint::CheckpointId,
};

pub(super) type Receive = Box<dyn FnMut(&mut Queue)>;

/// Which loop a parcel is for, and where its credit goes when it is used up.
#[derive(Clone)]
pub(super) struct Returns {
    /// The input of the chain, of those that have a loop each.
    pub(super) entrance: usize,
    pub(super) credits: Credits,
    pub(super) receivers: usize,
    /// Where the senders of this edge begin among all that say how far their event time has come.
    pub(super) first_clock: usize,
    /// Whether the subtask of the same index is the only one.
    pub(super) forward: bool,
}

/// Parcels that have arrived, by epoch: those of later epochs wait here, which is the alignment of a checkpoint.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) epochs: BTreeMap<u64, VecDeque<(Parcel, Returns)>>,
}

impl Queue {
    pub(super) fn arrive(&mut self, epoch: u64, parcels: &mut Vec<Parcel>, returns: &Returns) {
        let queue = self.epochs.entry(epoch).or_default();
        queue.extend(parcels.drain(..).map(|parcel| (parcel, returns.clone())));
    }

    /// The next parcel of the epoch; of any epoch when checkpoints are not aligned.
    pub(super) fn next(&mut self, epoch: CheckpointId, aligned: bool) -> Option<(Parcel, Returns)> {
        // The memory of the present one is used again and again.
        while self.epochs.first_key_value().is_some_and(|(first, all)| *first < epoch.0 && all.is_empty()) {
            self.epochs.pop_first();
        }
        let mut open = self.epochs.iter_mut().take_while(|(at, _)| !aligned || **at <= epoch.0);
        open.find_map(|(_, all)| all.pop_front())
    }

    pub(super) fn has(&self, epoch: CheckpointId) -> bool {
        let mut open = self.epochs.iter().take_while(|(at, _)| **at <= epoch.0);
        open.any(|(_, all)| !all.is_empty())
    }
}
