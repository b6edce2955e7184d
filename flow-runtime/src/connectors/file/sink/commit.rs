//! Makes pending files visible, each exactly once.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use super::{
    Finished, PendingFiles,
    output::{Place, cannot, sync_directory},
};
use crate::{
    checkpoint::CheckpointId,
    failpoint::{Point, reach},
    sink::{CommitError, Committed, SinkCommitter, Standing},
};

/// The committing half of a subtask.
#[derive(Debug)]
pub struct FileCommitter {
    pub(super) place: Arc<Place>,
}

impl SinkCommitter for FileCommitter {
    type Handle = PendingFiles;

    async fn commit(&mut self, _: CheckpointId, handle: &PendingFiles) -> Result<Committed, CommitError> {
        let (place, handle) = (self.place.clone(), handle.clone());
        let work = tokio::task::spawn_blocking(move || publish_all(&place.dir, &handle));
        work.await.map_err(|error| CommitError::Retry(error.into()))?
    }
}

/// Renames the files of a handle, as far as that has not been done.
pub(super) fn publish_all(dir: &Path, handle: &PendingFiles) -> Result<Committed, CommitError> {
    let mut outcome = Committed::Already;
    for file in &handle.files {
        if publish(dir, file)? == Committed::Now {
            outcome = Committed::Now;
        }
    }
    sync_directory(dir).map_err(CommitError::Retry)?;
    Ok(outcome)
}

/// Whether the files of a handle have their names.
pub(super) fn standing(dir: &Path, files: &[Finished]) -> Result<Standing, CommitError> {
    for file in files {
        if metadata(&dir.join(&file.hidden))?.is_some() {
            return Ok(Standing::Pending);
        }
        if metadata(&dir.join(&file.name))?.is_none() {
            // Moved on by who reads them, or gone before anybody could.
            return Ok(Standing::Unknown);
        }
    }
    Ok(Standing::Committed)
}

fn publish(dir: &Path, file: &Finished) -> Result<Committed, CommitError> {
    let (hidden, name) = (dir.join(&file.hidden), dir.join(&file.name));
    // A rename would replace a file of that name without a word; a link does not.
    match fs::hard_link(&hidden, &name) {
        Ok(()) => {
            reach(Point::FileLinked);
            remove(&hidden)?;
            reach(Point::FilePublished);
            return Ok(Committed::Now);
        }
        Err(error) => tracing::debug!("no new link `{}`: {error}", name.display()),
    }
    match (metadata(&hidden)?, metadata(&name)?) {
        // A file system without links.
        (Some(_), None) => {
            fs::rename(&hidden, &name).map_err(|error| CommitError::Retry(cannot("rename", &hidden, error)))?;
            Ok(Committed::Now)
        }
        // Linked, and then the process died.
        (Some(ours), Some(theirs)) if same_file(&ours, &theirs) => {
            remove(&hidden)?;
            Ok(Committed::Already)
        }
        (None, Some(theirs)) if theirs.len() == file.bytes && crc32(&name)? == file.crc32 => Ok(Committed::Already),
        (_, Some(_)) => Err(CommitError::Lost(
            format!(
                "`{}` exists already and is not what this job wrote under that name; give each sink a directory of \
                 its own, or a name of its own with `.prefix(..)`",
                name.display()
            )
            .into(),
        )),
        (None, None) => Err(CommitError::Lost(
            format!(
                "neither `{}` nor the finished `{}` exists; somebody has removed what the last checkpoint counts on",
                hidden.display(),
                name.display()
            )
            .into(),
        )),
    }
}

#[cfg(unix)]
fn same_file(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_file(a: &Metadata, b: &Metadata) -> bool {
    a.len() == b.len() && a.modified().ok() == b.modified().ok()
}

fn metadata(path: &Path) -> Result<Option<Metadata>, CommitError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommitError::Retry(cannot("look at", path, error))),
    }
}

fn remove(path: &Path) -> Result<(), CommitError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CommitError::Retry(cannot("remove", path, error)))
        }
        _ => Ok(()),
    }
}

fn crc32(path: &Path) -> Result<u32, CommitError> {
    let failed = |error| CommitError::Retry(cannot("read", path, error));
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(hasher.finalize()),
            read => hasher.update(&buffer[..read]),
        }
    }
}
