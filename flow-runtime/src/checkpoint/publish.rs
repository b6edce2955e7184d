//! Completing checkpoints, and finding the complete ones.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt, PutMode};
use tokio::runtime::Handle;

use super::{
    CheckpointError, CheckpointId, Damage, Manifest, Store, envelope,
    store::{CONCURRENCY, MANIFEST, folder},
};
use crate::failpoint::{Point, may_fail};

/// What [`Store::manifests`] finds.
pub type Found = Vec<(CheckpointId, Result<Manifest, CheckpointError>)>;

impl Store {
    /// Writes the manifest, and thereby completes the checkpoint. All its parts must have been written.
    ///
    /// When this future is dropped, the manifest is either not written, or will be before
    /// [`manifests`](Self::manifests) returns.
    ///
    /// # Errors
    /// [`Taken`](CheckpointError::Taken) when another run has completed a checkpoint of this number; when the
    /// store refuses.
    pub async fn put_manifest(&self, manifest: &Manifest) -> Result<(), CheckpointError> {
        let (store, id, path) = (self.clone(), manifest.id, manifest_path(manifest.id));
        let file = envelope::seal_manifest(&path, manifest)?;
        let guard = self.inner.publishing.clone().lock_owned().await;
        let failed = path.clone();
        let publish = async move {
            let _guard = guard;
            store.publish(id, &path, file).await
        };
        // On a task of its own, so that the lock is held until the file is there or not, whatever becomes of the
        // caller: an attempt that is being stopped must not complete a checkpoint after the next attempt has
        // chosen what to resume from.
        match Handle::try_current() {
            Ok(runtime) => match runtime.spawn(publish).await {
                Ok(result) => result,
                Err(e) => Err(CheckpointError::io("write", failed, e)),
            },
            Err(_) => publish.await,
        }
    }

    async fn publish(&self, id: CheckpointId, path: &str, file: Bytes) -> Result<(), CheckpointError> {
        let at = self.path(path)?;
        may_fail(Point::PutManifest).map_err(|e| CheckpointError::io("write", path, e))?;
        match self.inner.objects.put_opts(&at, file.clone().into(), PutMode::Create.into()).await {
            Ok(_) => Ok(()),
            Err(ObjectError::AlreadyExists { .. } | ObjectError::Precondition { .. }) => {
                // It may be ours all the same, when the answer to a first try was lost on its way.
                match self.read(path).await? {
                    Some(there) if there == file => Ok(()),
                    _ => Err(CheckpointError::Taken { location: self.location().to_owned(), id }),
                }
            }
            Err(e) => Err(CheckpointError::io("write", path, e)),
        }
    }

    /// Copies a checkpoint with all its files into another store.
    ///
    /// # Errors
    /// When a file is missing, or one of the stores refuses.
    pub(crate) async fn copy_checkpoint(
        &self,
        manifest: &Manifest,
        to: &Store,
    ) -> Result<(), CheckpointError> {
        for file in manifest.files() {
            let missing = || CheckpointError::damaged(&file.path, Damage::Missing);
            let bytes = self.read(&file.path).await?.ok_or_else(missing)?;
            let written = to.inner.objects.put(&to.path(&file.path)?, bytes.into()).await;
            written.map_err(|e| CheckpointError::io("write", &file.path, e))?;
        }
        to.put_manifest(manifest).await
    }

    /// All checkpoints, newest first; those whose manifest is damaged, or of a later format, with the reason.
    /// Waits for a manifest that is just being written through a clone of this store.
    ///
    /// # Errors
    /// When the store refuses. One that merely cannot be read now might be the newest, so nothing is skipped.
    pub async fn manifests(&self) -> Result<Found, CheckpointError> {
        drop(self.inner.publishing.lock().await);
        let mut ids = self.folders().await?;
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let found = stream::iter(ids)
            .map(|id| async move { Ok::<_, CheckpointError>((id, self.manifest(id).await?)) })
            .buffered(CONCURRENCY)
            .try_collect::<Vec<_>>()
            .await?;
        Ok(found.into_iter().filter_map(|(id, manifest)| Some((id, manifest?))).collect())
    }

    async fn manifest(
        &self,
        id: CheckpointId,
    ) -> Result<Option<Result<Manifest, CheckpointError>>, CheckpointError> {
        let path = manifest_path(id);
        let Some(file) = self.read(&path).await? else { return Ok(None) };
        let manifest = envelope::open_manifest(&path, &file).and_then(|manifest| {
            // A folder that was copied under another number.
            if manifest.id == id {
                Ok(manifest)
            } else {
                Err(CheckpointError::damaged(&path, Damage::Replaced))
            }
        });
        Ok(Some(manifest))
    }
}

fn manifest_path(id: CheckpointId) -> String {
    format!("{}/{MANIFEST}", folder(id))
}
