//! A checkpoint that a test keeps.

use crate::{
    checkpoint::{CheckpointId, Manifest, Store},
    error::Error,
    worker::io_runtime,
};

/// A checkpoint of a job under test, to be restored as often as one likes. See
/// [`Harness::snapshot`](super::Harness::snapshot).
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: Store,
    manifest: Manifest,
}

impl Snapshot {
    /// Of the newest checkpoint.
    pub(super) fn of(store: &Store) -> Result<Self, Error> {
        let newest = async {
            let found = store.manifests().await?;
            let manifest = found.into_iter().next().map(|(_, manifest)| manifest).transpose()?;
            manifest.ok_or(crate::checkpoint::CheckpointError::NoneFound {
                location: store.location().to_owned(),
            })
        };
        let manifest = io_runtime()?.block_on(newest)?;
        let kept = Snapshot { store: store.clone(), manifest };
        // Of its own, for the job's goes on and deletes what is old.
        Ok(Snapshot { store: kept.copy()?, ..kept })
    }

    /// A store with this checkpoint alone.
    pub(super) fn copy(&self) -> Result<Store, Error> {
        let copy = Store::in_memory();
        io_runtime()?.block_on(self.store.copy_checkpoint(&self.manifest, &copy))?;
        Ok(copy)
    }

    /// The number of the checkpoint.
    #[must_use]
    pub fn id(&self) -> CheckpointId {
        self.manifest.id
    }

    /// What it is made of.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}
