//! From which checkpoint a job resumes, and what it finds there.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    CheckpointError, CheckpointId, Manifest, PartFile, SplitState, Store, publish::Found, store::CONCURRENCY,
};

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreRequest {
    /// The newest checkpoint of the job's own store; a first start where there is none.
    Newest,
    /// The store or checkpoint at this path or URL, for example a savepoint; each time the program is started
    /// anew, even when the run before has completed checkpoints of its own.
    From(String),
    /// No state. The numbers of checkpoints go on after those that are there, so that old and new never mix.
    ///
    /// Until the new run has completed a checkpoint of its own, the newest one is still of an old run.
    Fresh,
}

/// What is wanted among the checkpoints of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The newest after this one, or none.
    NewestAfter(CheckpointId),
    /// Exactly this.
    Exactly(CheckpointId),
    /// The newest; there must be one.
    Newest,
}

/// What [`choose`] chose.
#[derive(Debug, Default)]
pub struct Choice {
    /// The checkpoint to resume from; `None` to begin without state.
    pub manifest: Option<Manifest>,
    /// What the user should know: that a newer checkpoint was passed over, and why.
    pub note: Option<String>,
}

/// Chooses among the checkpoints of one store, newest first.
///
/// # Errors
/// When the newest is damaged and older ones are not allowed; when what was asked for is not there.
pub fn choose(
    found: &[(CheckpointId, Result<Manifest, CheckpointError>)],
    wanted: Wanted,
    allow_older: bool,
    location: &str,
) -> Result<Choice, CheckpointError> {
    let location = || location.to_owned();
    let after = match wanted {
        Wanted::NewestAfter(after) => after,
        Wanted::Newest => CheckpointId(0),
        Wanted::Exactly(id) => {
            return match found.iter().find(|(found, _)| *found == id) {
                Some((_, Ok(manifest))) => Ok(Choice { manifest: Some(manifest.clone()), note: None }),
                Some((_, Err(e))) => {
                    Err(CheckpointError::Named { location: location(), id, cause: e.to_string() })
                }
                None => {
                    let available = found.iter().filter(|(_, m)| m.is_ok()).map(|(id, _)| *id).collect();
                    Err(CheckpointError::NotFound { location: location(), id, available })
                }
            };
        }
    };
    let candidates = || found.iter().filter(|(id, _)| *id > after);
    match candidates().next() {
        None if wanted == Wanted::Newest => Err(CheckpointError::NoneFound { location: location() }),
        None => Ok(Choice::default()),
        Some((_, Ok(manifest))) => Ok(Choice { manifest: Some(manifest.clone()), note: None }),
        Some((id, Err(e))) if !allow_older => {
            Err(CheckpointError::NewestUnusable { id: *id, cause: e.to_string() })
        }
        Some((id, Err(e))) => {
            let Some(manifest) = candidates().find_map(|(_, m)| m.as_ref().ok()) else {
                let (location, count) = (location(), candidates().count());
                return Err(CheckpointError::AllUnusable { location, count, id: *id, cause: e.to_string() });
            };
            let note = format!("resuming from checkpoint {}, not from the newest, {id}: {e}", manifest.id);
            Ok(Choice { manifest: Some(manifest.clone()), note: Some(note) })
        }
    }
}

/// Finds the checkpoint to resume from, at the start of a job and at each restart within its process.
#[derive(Debug)]
pub struct Restore {
    request: RestoreRequest,
    allow_older: bool,
    /// The newest checkpoint when the job started: whatever is newer is this run's own.
    began_after: Option<CheckpointId>,
}

/// What [`Restore::resume`] found.
#[derive(Debug, Default)]
pub struct Resumed {
    /// The checkpoint with all its parts; `None` to begin without state.
    pub restored: Option<Restored>,
    /// The highest number in the job's store and of what was restored; the next checkpoint is the one after it.
    pub last: CheckpointId,
    /// What the user should know.
    pub note: Option<String>,
}

impl Restore {
    /// Nothing is read yet. `allow_older` is `--allow-older-checkpoint`.
    #[must_use]
    pub fn new(request: RestoreRequest, allow_older: bool) -> Self {
        Restore { request, allow_older, began_after: None }
    }

    /// Finds the checkpoint, has it checked, and reads it.
    ///
    /// The first call does what the user asked for. Later calls prefer a checkpoint that this run has completed
    /// since; so a run that began [`Fresh`](RestoreRequest::Fresh) never falls back to the state of an older one.
    /// A checkpoint of which a part is damaged counts like one with a damaged manifest.
    ///
    /// # Errors
    /// Those of [`choose`] and of `check`, which is usually [`Manifest::check`]; when the store refuses.
    pub async fn resume(
        &mut self,
        store: &Store,
        check: impl Fn(&Manifest) -> Result<(), CheckpointError>,
    ) -> Result<Resumed, CheckpointError> {
        let own = store.manifests().await?;
        store.release_all();
        let last = own.first().map(|(id, _)| *id).unwrap_or_default();
        let began_after = *self.began_after.get_or_insert(last);
        if last < began_after {
            // Retention keeps the newest, so somebody has emptied the store under the running job. To begin
            // without state now would be a loss in silence.
            let available = own.iter().filter(|(_, m)| m.is_ok()).map(|(id, _)| *id).collect();
            let location = store.location().to_owned();
            return Err(CheckpointError::NotFound { location, id: began_after, available });
        }
        let mut resumed = if last > began_after {
            let mut resumed = self.load(store, own, Wanted::NewestAfter(began_after), &check).await?;
            if let Some(restored) = &mut resumed.restored {
                restored.of_this_run = true;
            }
            resumed
        } else {
            match &self.request {
                RestoreRequest::Fresh => Resumed::default(),
                RestoreRequest::Newest => {
                    self.load(store, own, Wanted::NewestAfter(CheckpointId(0)), &check).await?
                }
                RestoreRequest::From(path) => {
                    let (other, id) = Store::open_checkpoint(path)?;
                    let found = other.manifests().await?;
                    let wanted = id.map_or(Wanted::Newest, Wanted::Exactly);
                    self.load(&other, found, wanted, &check).await?
                }
            }
        };
        resumed.last = resumed.restored.as_ref().map_or(last, |r| last.max(r.manifest.id));
        Ok(resumed)
    }

    async fn load(
        &self,
        store: &Store,
        mut found: Found,
        wanted: Wanted,
        check: &impl Fn(&Manifest) -> Result<(), CheckpointError>,
    ) -> Result<Resumed, CheckpointError> {
        loop {
            let Choice { manifest, note } = choose(&found, wanted, self.allow_older, store.location())?;
            let Some(manifest) = manifest else { return Ok(Resumed::default()) };
            check(&manifest)?;
            let id = manifest.id;
            match Restored::load(store, manifest).await {
                Ok(restored) => return Ok(Resumed { restored: Some(restored), last: id, note }),
                Err(e @ (CheckpointError::Damaged { .. } | CheckpointError::Format { .. })) => {
                    // Choose again, knowing that; each round rules out one more, so this ends.
                    if let Some((_, manifest)) = found.iter_mut().find(|(found, _)| *found == id) {
                        *manifest = Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }
}

/// A checkpoint with all its parts, verified.
#[derive(Debug)]
pub struct Restored {
    /// The checkpoint.
    pub manifest: Manifest,
    /// Whether this run of the program has written it, so that its files can be built upon.
    of_this_run: bool,
    states: HashMap<String, Vec<Bytes>>,
    /// By uid: the name of the list, the subtask, and the items.
    operator_states: HashMap<String, Vec<(String, usize, Bytes)>>,
    handles: HashMap<String, Vec<(usize, CheckpointId, Bytes)>>,
}

impl Restored {
    /// Reads and verifies all parts that the manifest names.
    ///
    /// # Errors
    /// When the store refuses or a part is damaged.
    pub async fn load(store: &Store, manifest: Manifest) -> Result<Self, CheckpointError> {
        let states = read(store, manifest.states.iter().flat_map(|s| &s.files)).await?;
        let uids = manifest.states.iter().flat_map(|part| part.files.iter().map(|_| &part.uid));
        let mut by_state = HashMap::<_, Vec<_>>::new();
        for (uid, segment) in uids.zip(states) {
            by_state.entry(uid.clone()).or_default().push(segment);
        }
        let lists = read(store, manifest.operator_states.iter().map(|s| &s.file)).await?;
        let mut operator_states = HashMap::<_, Vec<_>>::new();
        for (part, bytes) in manifest.operator_states.iter().zip(lists) {
            let parts = operator_states.entry(part.uid.clone()).or_default();
            parts.push((part.name.clone(), part.subtask, bytes));
        }
        Ok(Restored { states: by_state, operator_states, ..Self::load_handles(store, manifest).await? })
    }

    /// Reads and verifies the transactions alone, for somebody who does not run the job.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub(crate) async fn load_handles(store: &Store, manifest: Manifest) -> Result<Self, CheckpointError> {
        let sinks = read(store, manifest.sinks.iter().map(|s| &s.file)).await?;
        let mut by_sink = HashMap::<_, Vec<_>>::new();
        for (part, bytes) in manifest.sinks.iter().zip(sinks) {
            by_sink.entry(part.uid.clone()).or_default().push((part.subtask, part.checkpoint, bytes));
        }
        for handles in by_sink.values_mut() {
            handles.sort_by_key(|(subtask, checkpoint, _)| (*checkpoint, *subtask));
        }
        Ok(Restored {
            manifest,
            of_this_run: false,
            states: HashMap::new(),
            operator_states: HashMap::new(),
            handles: by_sink,
        })
    }

    /// The files of a subtask's state, where new changes may be added to them. That takes files of this very
    /// program: another may encode keys and values otherwise, and should not have to read the old ones for ever.
    pub(crate) fn files(&self, uid: &str, subtask: usize, parallelism: usize) -> Option<Vec<PartFile>> {
        let same = self.manifest.operator(uid).is_some_and(|was| was.parallelism == parallelism);
        let part = self.manifest.states(uid).find(|part| part.subtask == subtask)?;
        (self.of_this_run && same).then(|| part.files.clone())
    }

    /// The segments of an operator's state, in the order of the manifest: of each subtask, all of its state as it once
    /// was, and then what has changed since.
    #[must_use]
    pub fn states(&self, uid: &str) -> &[Bytes] {
        self.states.get(uid).map_or(&[], Vec::as_slice)
    }

    /// A list of an operator that belongs to no key: the items of each subtask that had any, in the order of the
    /// subtasks.
    #[must_use]
    pub fn operator_state(&self, uid: &str, name: &str) -> Vec<(usize, Bytes)> {
        let parts = self.operator_states.get(uid).into_iter().flatten();
        let parts = parts.filter(|(of, ..)| of == name);
        let mut parts: Vec<_> = parts.map(|(_, subtask, bytes)| (*subtask, bytes.clone())).collect();
        parts.sort_by_key(|(subtask, _)| *subtask);
        parts
    }

    /// The splits of a source, of all its subtasks.
    #[must_use]
    pub fn splits(&self, uid: &str) -> Vec<SplitState> {
        self.manifest.splits(uid).cloned().collect()
    }

    /// The pending transactions of a sink: subtask, checkpoint and handle, in the order of checkpoint and subtask.
    #[must_use]
    pub fn handles(&self, uid: &str) -> Vec<(usize, CheckpointId, Bytes)> {
        self.handles.get(uid).cloned().unwrap_or_default()
    }
}

/// In the order of `files`.
async fn read<'a>(
    store: &Store,
    files: impl Iterator<Item = &'a PartFile>,
) -> Result<Vec<Bytes>, CheckpointError> {
    // Collected first: a stream over a borrowing iterator would not be `Send` for all lifetimes.
    let reads: Vec<_> = files.map(|file| store.get_part(file)).collect();
    stream::iter(reads).buffered(CONCURRENCY).try_collect().await
}
