//! Where checkpoints are kept: reading and writing their files.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{
    Error as ObjectError, ObjectStore, ObjectStoreExt, PutMode, PutPayload, local::LocalFileSystem,
    memory::InMemory, path::Path,
};

use super::{
    CheckpointError, CheckpointId, Damage, Manifest, PartFile, envelope,
    location::{self, Location},
};

/// How many files are read at the same time.
pub(super) const CONCURRENCY: usize = 16;

pub(super) const MANIFEST: &str = "manifest";

/// The place where a job keeps its checkpoints: a directory, or a prefix in an object store.
///
/// Clones are the same store. The [module](super) describes what lies in it.
#[derive(Clone)]
pub struct Store {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// Goes before every path; empty for a directory, whose paths are relative to it.
    pub(super) prefix: Path,
    /// The directory, where it is one.
    pub(super) local: Option<PathBuf>,
    location: String,
    /// Random, so that no two runs ever write a file of the same name.
    run: u64,
    written: AtomicU64,
}

impl Store {
    /// Opens the store at a path, a `file://` URL or, with feature `s3`, an `s3://bucket/prefix` URL. A directory
    /// is created where it is missing.
    ///
    /// # Errors
    /// When the URL cannot be understood or the directory cannot be created.
    pub fn open(url: &str) -> Result<Self, CheckpointError> {
        match Location::parse(url)? {
            Location::Local(dir) => {
                location::create_dir(&dir)
                    .map_err(|e| CheckpointError::io("create", dir.display().to_string(), e))?;
                Self::local(dir)
            }
            Location::S3 { bucket, prefix } => Self::s3(&bucket, &prefix),
        }
    }

    /// Opens what `--from` names: a store (`dir`), or a checkpoint in it (`dir/chk-12`, `dir/chk-12/manifest`).
    /// Nothing is created.
    ///
    /// # Errors
    /// When the URL cannot be understood or the directory is not there.
    pub fn open_checkpoint(url: &str) -> Result<(Self, Option<CheckpointId>), CheckpointError> {
        let (store, id) = location::split_checkpoint(url);
        let store = match Location::parse(store)? {
            Location::Local(dir) if dir.is_dir() => Self::local(dir)?,
            Location::Local(dir) => {
                return Err(CheckpointError::NoneFound { location: dir.display().to_string() });
            }
            Location::S3 { bucket, prefix } => Self::s3(&bucket, &prefix)?,
        };
        Ok((store, id))
    }

    /// A store that lives as long as this value, for tests.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Arc::new(InMemory::new()), Path::default(), None, "memory".to_owned())
    }

    fn local(dir: PathBuf) -> Result<Self, CheckpointError> {
        let dir =
            dir.canonicalize().map_err(|e| CheckpointError::io("open", dir.display().to_string(), e))?;
        let location = dir.display().to_string();
        let objects = LocalFileSystem::new_with_prefix(&dir)
            .map_err(|e| CheckpointError::io("open", location.clone(), e))?
            // What was acknowledged must outlive a power failure: syncs the file, and the folder that names it.
            .with_fsync(true);
        Ok(Self::new(Arc::new(objects), Path::default(), Some(dir), location))
    }

    #[cfg(feature = "s3")]
    fn s3(bucket: &str, prefix: &str) -> Result<Self, CheckpointError> {
        let location = format!("s3://{bucket}/{prefix}");
        let objects = object_store::aws::AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .build()
            .map_err(|e| CheckpointError::io("open", location.clone(), e))?;
        let prefix = Path::parse(prefix)
            .map_err(|e| CheckpointError::Location { url: location.clone(), problem: e.to_string() })?;
        Ok(Self::new(Arc::new(objects), prefix, None, location))
    }

    #[cfg(not(feature = "s3"))]
    fn s3(bucket: &str, prefix: &str) -> Result<Self, CheckpointError> {
        Err(CheckpointError::Location {
            url: format!("s3://{bucket}/{prefix}"),
            problem: "this program was built without S3; build it with feature `s3` of `flow`".to_owned(),
        })
    }

    fn new(objects: Arc<dyn ObjectStore>, prefix: Path, local: Option<PathBuf>, location: String) -> Self {
        // The standard library's hash keys are random, which saves a dependency.
        let run = RandomState::new().build_hasher().finish();
        let written = AtomicU64::new(0);
        Store { inner: Arc::new(Inner { objects, prefix, local, location, run, written }) }
    }

    /// Where it is, for messages; holds no credentials.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.inner.location
    }

    /// Writes a part of the checkpoint that will be `id`. `name` says for people what it is, such as
    /// `words.sum-0`; the name of the file is made unique.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn put_part(
        &self,
        id: CheckpointId,
        name: &str,
        payload: Bytes,
    ) -> Result<PartFile, CheckpointError> {
        // Unique across the subtasks of this run, and across runs: a run that was thought dead and is still
        // writing must not touch the files of the next.
        let number = self.inner.written.fetch_add(1, Ordering::Relaxed);
        let path = format!("{}/{}.{:016x}-{number}.part", folder(id), file_name(name), self.inner.run);
        let crc = envelope::crc(&payload);
        let header = envelope::part_header(&payload, crc);
        let bytes = payload.len() as u64;
        let content: PutPayload = [header, payload].into_iter().collect();
        let at = self.path(&path)?;
        self.inner.objects.put(&at, content).await.map_err(|e| CheckpointError::io("write", &path, e))?;
        Ok(PartFile { path, bytes, crc })
    }

    /// Reads a part and verifies all of it.
    ///
    /// # Errors
    /// When the store refuses, or the part is not what was written.
    pub async fn get_part(&self, part: &PartFile) -> Result<Bytes, CheckpointError> {
        let missing = || CheckpointError::damaged(&part.path, Damage::Missing);
        let file = self.read(&part.path).await?.ok_or_else(missing)?;
        let (payload, crc) = envelope::open_part(&part.path, &file)?;
        if payload.len() as u64 != part.bytes || crc != part.crc {
            return Err(CheckpointError::damaged(&part.path, Damage::Replaced));
        }
        Ok(payload)
    }

    /// Writes the manifest, and thereby completes the checkpoint. All its parts must have been written.
    ///
    /// # Errors
    /// [`Taken`](CheckpointError::Taken) when another run has completed a checkpoint of this number; when the
    /// store refuses.
    pub async fn put_manifest(&self, manifest: &Manifest) -> Result<(), CheckpointError> {
        let path = manifest_path(manifest.id);
        let file = envelope::seal_manifest(&path, manifest)?;
        let at = self.path(&path)?;
        match self.inner.objects.put_opts(&at, file.clone().into(), PutMode::Create.into()).await {
            Ok(_) => Ok(()),
            Err(ObjectError::AlreadyExists { .. } | ObjectError::Precondition { .. }) => {
                // It may be ours all the same, when the answer to a first try was lost on its way.
                match self.read(&path).await? {
                    Some(there) if there == file => Ok(()),
                    _ => {
                        Err(CheckpointError::Taken { location: self.location().to_owned(), id: manifest.id })
                    }
                }
            }
            Err(e) => Err(CheckpointError::io("write", path, e)),
        }
    }

    /// All checkpoints, newest first; those whose manifest is damaged, or of a later format, with the reason.
    ///
    /// # Errors
    /// When the store refuses. One that merely cannot be read now might be the newest, so nothing is skipped.
    pub async fn manifests(
        &self,
    ) -> Result<Vec<(CheckpointId, Result<Manifest, CheckpointError>)>, CheckpointError> {
        let mut ids = self.folders().await?;
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let found = stream::iter(ids)
            .map(|id| async move { Ok::<_, CheckpointError>((id, self.manifest(id).await?)) })
            .buffered(CONCURRENCY)
            .try_collect::<Vec<_>>()
            .await?;
        Ok(found.into_iter().filter_map(|(id, manifest)| Some((id, manifest?))).collect())
    }

    /// Refuses a store that holds checkpoints, where an empty one is needed.
    ///
    /// # Errors
    /// [`NotEmpty`](CheckpointError::NotEmpty), or when the store refuses.
    pub async fn require_empty(&self) -> Result<(), CheckpointError> {
        if self.folders().await?.is_empty() {
            Ok(())
        } else {
            Err(CheckpointError::NotEmpty { location: self.location().to_owned() })
        }
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

    /// `None` when there is no such file.
    async fn read(&self, path: &str) -> Result<Option<Bytes>, CheckpointError> {
        let failed = |e| CheckpointError::io("read", path, e);
        match self.inner.objects.get(&self.path(path)?).await {
            Ok(file) => file.bytes().await.map(Some).map_err(failed),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }

    /// Refuses what would lead out of the store.
    pub(super) fn path(&self, path: &str) -> Result<Path, CheckpointError> {
        let parsed = Path::parse(path).map_err(|e| {
            CheckpointError::damaged(path, Damage::Content(format!("no path of a part: {e}")))
        })?;
        Ok(self.inner.prefix.parts().chain(parsed.parts()).collect())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.location()).finish()
    }
}

pub(super) fn folder(id: CheckpointId) -> String {
    format!("chk-{:010}", id.0)
}

fn manifest_path(id: CheckpointId) -> String {
    format!("{}/{MANIFEST}", folder(id))
}

/// Uids may hold anything; file names must not.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    name.chars().take(100).map(plain).collect()
}
