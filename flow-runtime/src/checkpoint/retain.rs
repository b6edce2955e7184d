//! What lies in a store, and what of it may go.

use std::{collections::HashSet, fs, io, path::Path};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{Error as ObjectError, ObjectStoreExt};

use super::{
    CheckpointError, CheckpointId, Store,
    store::{CONCURRENCY, MANIFEST, folder},
};
use crate::failpoint::{Point, reach};

impl Store {
    /// Keeps the newest `keep` checkpoints (at least one) and deletes the older ones, together with all parts that
    /// no checkpoint names that is kept, also those of attempts that never completed.
    ///
    /// Nothing that is newer than the newest checkpoint is touched: it may be in progress. Neither is a part that a later
    /// checkpoint of this process is going to name. A damaged checkpoint
    /// stays until it is older than those that are kept.
    ///
    /// # Errors
    /// When the store refuses; nothing that is needed is gone then.
    pub async fn retain(&self, keep: usize) -> Result<(), CheckpointError> {
        let (mut good, mut damaged) = (Vec::new(), HashSet::new());
        for (id, manifest) in self.manifests().await? {
            match manifest {
                Ok(manifest) => good.push(manifest),
                Err(_) => drop(damaged.insert(id)),
            }
        }
        good.truncate(keep.max(1));
        let (Some(newest), Some(oldest)) = (good.first().map(|m| m.id), good.last().map(|m| m.id)) else {
            return Ok(());
        };
        let needed: HashSet<&str> = good.iter().flat_map(|m| m.files()).map(|f| f.path.as_str()).collect();
        let stays = |id| id > newest || (id > oldest && damaged.contains(&id));
        let kept: HashSet<CheckpointId> = good.iter().map(|m| m.id).collect();

        // Manifests go before parts: a crash in between must not leave a checkpoint that lacks some.
        let (mut manifests, mut parts, mut emptied) = (Vec::new(), Vec::new(), Vec::new());
        for id in self.folders().await?.into_iter().filter(|id| !stays(*id)) {
            for name in self.files(id).await? {
                let path = format!("{}/{name}", folder(id));
                if name == MANIFEST {
                    if !kept.contains(&id) {
                        manifests.push(path);
                    }
                } else if is_ours(&name) && !needed.contains(path.as_str()) {
                    parts.push(path);
                }
            }
            if !kept.contains(&id) {
                emptied.push(folder(id));
            }
        }
        // Asked for after the files were listed: what is held is held before it is there, so whatever is on the list
        // and will be named is seen here. The other way round, a file that is written in between would be deleted.
        let held = self.inner.held.at(newest);
        parts.retain(|path| !held.contains(finished(path)));
        // The oldest first, so that what a crash leaves is an unbroken row.
        manifests.sort_unstable();
        self.delete_all(manifests).await?;
        self.delete_all(parts).await?;
        self.remove_empty(emptied).await
    }

    /// Deletes all checkpoints and everything that belongs to any, for a job whose end nobody will resume from.
    ///
    /// Manifests go first, and among them the newest last: a crash in between leaves that one, whole, and not an older
    /// one whose transactions have been committed long ago.
    ///
    /// # Errors
    /// When the store refuses; what is left is sound then.
    pub async fn delete_checkpoints(&self) -> Result<(), CheckpointError> {
        drop(self.inner.publishing.lock().await);
        let mut ids = self.folders().await?;
        ids.sort_unstable();
        let (mut manifests, mut parts) = (Vec::new(), Vec::new());
        for id in &ids {
            for name in self.files(*id).await? {
                let path = format!("{}/{name}", folder(*id));
                if name == MANIFEST {
                    manifests.push(path);
                } else if is_ours(&name) {
                    parts.push(path);
                }
            }
        }
        for manifest in manifests {
            self.delete_all(vec![manifest]).await?;
        }
        self.delete_all(parts).await?;
        self.remove_empty(ids.into_iter().map(folder).collect()).await
    }

    /// The numbers of all checkpoints that have a folder, complete or not.
    pub(crate) async fn folders(&self) -> Result<Vec<CheckpointId>, CheckpointError> {
        let names = match &self.inner.local {
            // Not through the object store, which gives up on a name that is not UTF-8, even on one beside ours.
            Some(dir) => {
                let dir = dir.clone();
                self.blocking("list", String::new(), move || names(&dir, Path::is_dir)).await?
            }
            None => {
                let prefix = Some(&self.inner.prefix);
                let listed = self.inner.objects.list_with_delimiter(prefix).await;
                let listed = listed.map_err(|e| CheckpointError::io("list", self.location(), e))?;
                listed.common_prefixes.iter().filter_map(|p| Some(p.filename()?.to_owned())).collect()
            }
        };
        Ok(names.iter().filter_map(|name| checkpoint_of(name)).collect())
    }

    /// The names of the files of one checkpoint.
    async fn files(&self, id: CheckpointId) -> Result<Vec<String>, CheckpointError> {
        let name = folder(id);
        if let Some(dir) = &self.inner.local {
            let dir = dir.join(&name);
            return self.blocking("list", name, move || gone(names(&dir, |p| !p.is_dir()))).await;
        }
        let listed = self.inner.objects.list_with_delimiter(Some(&self.path(&name)?)).await;
        let listed = listed.map_err(|e| CheckpointError::io("list", name, e))?;
        Ok(listed.objects.iter().filter_map(|o| Some(o.location.filename()?.to_owned())).collect())
    }

    async fn delete_all(&self, paths: Vec<String>) -> Result<(), CheckpointError> {
        stream::iter(paths)
            .map(|path| async move {
                if let Some(dir) = &self.inner.local {
                    // The object store refuses the names of its own unfinished files.
                    let file = dir.join(&path);
                    self.blocking("delete", path, move || gone(fs::remove_file(file))).await?;
                    reach(Point::FileDeleted);
                    return Ok(());
                }
                match self.inner.objects.delete(&self.path(&path)?).await {
                    Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
                    Err(e) => Err(CheckpointError::io("delete", path, e)),
                }
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await
    }

    /// Object stores have no folders; in a directory one with a foreign file in it stays.
    async fn remove_empty(&self, folders: Vec<String>) -> Result<(), CheckpointError> {
        let Some(dir) = self.inner.local.clone() else { return Ok(()) };
        self.blocking("delete", String::new(), move || {
            for folder in folders {
                let _ = fs::remove_dir(dir.join(folder));
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        action: &'static str,
        path: String,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, CheckpointError> {
        let path = if path.is_empty() { self.location().to_owned() } else { path };
        let result = match tokio::runtime::Handle::try_current() {
            Ok(runtime) => match runtime.spawn_blocking(work).await {
                Ok(result) => result,
                Err(e) => Err(io::Error::other(e)),
            },
            Err(_) => work(),
        };
        result.map_err(|e| CheckpointError::io(action, path, e))
    }
}

/// Whether a file in a checkpoint's folder is one of ours: a part, or what the object store left of an unfinished
/// write (`name#1`).
fn is_ours(name: &str) -> bool {
    let whole = finished(name);
    whole.ends_with(".part") || (whole == MANIFEST && whole != name)
}

/// What an unfinished file will be called, and any other is.
fn finished(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((whole, suffix)) if !suffix.is_empty() && suffix.bytes().all(|b| b.is_ascii_digit()) => whole,
        _ => name,
    }
}

/// The number of the checkpoint whose folder this is; other names are not ours.
fn checkpoint_of(name: &str) -> Option<CheckpointId> {
    let id = CheckpointId(name.strip_prefix("chk-")?.parse().ok()?);
    (folder(id) == name).then_some(id)
}

fn names(dir: &Path, wanted: impl Fn(&Path) -> bool) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let (Ok(name), true) = (entry.file_name().into_string(), wanted(&entry.path())) {
            names.push(name);
        }
    }
    Ok(names)
}

/// That something has gone already is as good.
fn gone<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        other => other,
    }
}
