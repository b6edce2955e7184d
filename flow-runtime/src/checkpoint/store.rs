//! Where checkpoints are kept.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use object_store::{ObjectStore, local::LocalFileSystem, memory::InMemory, path::Path};
use tokio::sync::Mutex;

use super::{
    CheckpointError, CheckpointId, Damage,
    held::Held,
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
    pub(super) run: u64,
    /// How many parts this run has begun to write.
    pub(super) written: AtomicU64,
    /// Held while a manifest is being written.
    pub(super) publishing: Arc<Mutex<()>>,
    pub(super) held: Held,
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

    /// A store in any object store, such as one that this crate cannot open by URL. `location` says where it is, for
    /// messages.
    #[must_use]
    pub fn over(objects: Arc<dyn ObjectStore>, location: impl Into<String>) -> Self {
        Self::new(objects, Path::default(), None, location.into())
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
        let (written, publishing, held) = (AtomicU64::new(0), Arc::default(), Held::default());
        Store { inner: Arc::new(Inner { objects, prefix, local, location, run, written, publishing, held }) }
    }

    /// Where it is, for messages; holds no credentials.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.inner.location
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
