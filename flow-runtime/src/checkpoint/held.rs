//! Parts that no manifest names yet, and that must stay all the same.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{CheckpointId, Store};

/// What the background has written for a checkpoint to come. Retention goes by manifests and by the numbers of
/// folders, and knows neither that such a file will be named, nor in which manifest.
///
/// Kept in memory: what a killed process held, nobody will name.
#[derive(Default)]
pub(super) struct Held(Mutex<HashMap<String, Option<CheckpointId>>>);

impl Held {
    fn paths(&self) -> MutexGuard<'_, HashMap<String, Option<CheckpointId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold(&self, path: &str) {
        self.paths().insert(path.to_owned(), None);
    }

    /// What is held now that `newest` is complete. From then on manifests decide what stays of what was released
    /// before.
    pub(super) fn at(&self, newest: CheckpointId) -> HashSet<String> {
        let mut paths = self.paths();
        paths.retain(|_, last| last.is_none_or(|last| last > newest));
        paths.keys().cloned().collect()
    }
}

impl Store {
    /// No checkpoint after `last` will name this part. That one itself may still be in the making, so the part goes
    /// when it, or a later one, is complete and does not name it.
    pub(super) fn release(&self, path: &str, last: CheckpointId) {
        if let Some(released) = self.inner.held.paths().get_mut(path) {
            *released = Some(last);
        }
    }

    /// Whoever held something is gone.
    pub(super) fn release_all(&self) {
        self.inner.held.paths().clear();
    }
}
