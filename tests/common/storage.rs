//! Checkpoint storage that fails, hangs and is slow where a test says so.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use flow::checkpoint::Store;
use futures_util::stream::BoxStream;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};

use super::{Fuse, Gate};

/// What happens to a file.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// It is refused.
    Refused,
    /// It is written, and the answer is an error.
    Unheard,
    /// Nothing, ever.
    Hangs,
    /// It is written, whatever becomes of the writer, once the gate opens.
    Late(Gate),
    /// It takes so long.
    Slow(Duration),
}

/// In memory, and observed. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    objects: Arc<InMemory>,
    state: Arc<Mutex<State>>,
    newest: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    troubles: Vec<(&'static str, Trouble, Fuse)>,
    /// The checkpoints of which files are being written, and how many.
    writing: BTreeMap<u64, usize>,
    most_at_once: usize,
    manifests: BTreeSet<u64>,
    /// The checkpoints to which a trouble happened.
    troubled: BTreeSet<u64>,
}

impl Storage {
    pub(crate) fn new() -> Self {
        Storage { objects: Arc::default(), state: Arc::default(), newest: Arc::default() }
    }

    /// A file whose name contains `name` meets this trouble as long as the fuse blows.
    pub(crate) fn with(self, name: &'static str, trouble: Trouble, fuse: &Fuse) -> Self {
        self.state().troubles.push((name, trouble, fuse.clone()));
        self
    }

    pub(crate) fn store(&self) -> Store {
        Store::over(Arc::new(self.clone()), "a place of trouble")
    }

    /// The newest checkpoint whose manifest is there; 0 without one.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// The checkpoints whose manifests were ever there.
    pub(crate) fn manifests(&self) -> BTreeSet<u64> {
        self.state().manifests.clone()
    }

    /// The checkpoints to which a trouble happened.
    pub(crate) fn troubled(&self) -> BTreeSet<u64> {
        self.state().troubled.clone()
    }

    /// Of how many checkpoints files were being written at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.state().most_at_once
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let written = self.objects.put_opts(location, payload, options).await?;
        if location.filename() == Some("manifest") {
            let id = checkpoint(location);
            self.state().manifests.insert(id);
            self.newest.fetch_max(id, Ordering::SeqCst);
        }
        Ok(written)
    }

    fn trouble(&self, location: &Path) -> Option<Trouble> {
        let mut state = self.state();
        let name = location.filename()?;
        let troubles = state.troubles.iter();
        let trouble = troubles.filter(|(part, ..)| name.contains(part)).find(|(.., fuse)| fuse.blows());
        let trouble = trouble.map(|(_, trouble, _)| trouble.clone())?;
        state.troubled.insert(checkpoint(location));
        Some(trouble)
    }
}

/// Counts a file while it is being written.
struct Writing(Storage, u64);

impl Writing {
    fn begin(storage: &Storage, checkpoint: u64) -> Self {
        let mut state = storage.state();
        *state.writing.entry(checkpoint).or_default() += 1;
        state.most_at_once = state.most_at_once.max(state.writing.len());
        Writing(storage.clone(), checkpoint)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Some(count) = state.writing.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                state.writing.remove(&self.1);
            }
        }
    }
}

fn checkpoint(location: &Path) -> u64 {
    let folder = location.parts().next().expect("a file is in a folder");
    folder.as_ref().trim_start_matches("chk-").parse().expect("of a checkpoint")
}

fn refused() -> Error {
    Error::Generic { store: "trouble", source: "no space left".into() }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a place of trouble")
    }
}

#[async_trait]
impl ObjectStore for Storage {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let _writing = Writing::begin(self, checkpoint(location));
        match self.trouble(location) {
            None => self.write(location, payload, options).await,
            Some(Trouble::Refused) => Err(refused()),
            Some(Trouble::Unheard) => {
                self.write(location, payload, options).await?;
                Err(refused())
            }
            Some(Trouble::Hangs) => std::future::pending().await,
            Some(Trouble::Late(gate)) => {
                let (storage, location) = (self.clone(), location.clone());
                let late = tokio::spawn(async move {
                    gate.opened().await;
                    storage.write(&location, payload, options).await
                });
                late.await.unwrap_or_else(|_| Err(refused()))
            }
            Some(Trouble::Slow(pause)) => {
                tokio::time::sleep(pause).await;
                self.write(location, payload, options).await
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.objects.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}
