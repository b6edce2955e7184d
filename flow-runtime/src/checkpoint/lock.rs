//! One run at a time per directory.

use std::{
    fs::{File, TryLockError},
    io::{Read, Seek, Write},
};

use super::{CheckpointError, Store};

/// The file that a run holds locked. It stays when the run is over: deleting it would let two runs lock two files of
/// that name.
const NAME: &str = "lock";

/// Held for as long as a job runs. The system releases it when the process ends, however it ends.
#[derive(Debug)]
#[must_use]
pub struct Lock(#[allow(dead_code, reason = "held")] Option<File>);

impl Store {
    /// Keeps other runs out of a directory: a second copy of the job would roll back what the first has pre-committed.
    ///
    /// An object store has no locks. There the second of two copies fails at its first manifest, since the first has
    /// [taken](CheckpointError::Taken) its number.
    ///
    /// # Errors
    /// [`InUse`](CheckpointError::InUse) when another run holds it; when the file cannot be opened.
    pub fn lock(&self) -> Result<Lock, CheckpointError> {
        let Some(dir) = &self.inner.local else { return Ok(Lock(None)) };
        let path = dir.join(NAME);
        let failed = |action| {
            let path = path.display().to_string();
            move |cause| CheckpointError::io(action, path, cause)
        };
        let mut file = File::options()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(failed("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                // For the message only: the holder may just be about to write it.
                let _ = file.read_to_string(&mut process);
                return Err(CheckpointError::InUse {
                    location: self.location().to_owned(),
                    process: process.trim().to_owned(),
                });
            }
            Err(TryLockError::Error(cause)) => return Err(failed("lock")(cause)),
        }
        let noted = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(failed("write"))?;
        Ok(Lock(Some(file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path().to_str().unwrap()).unwrap();
        let first = open().lock().unwrap();
        let error = open().lock().unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        let _second = open().lock().unwrap();
    }

    #[test]
    fn memory_is_nobody_elses() {
        let store = Store::in_memory();
        let _both = (store.lock().unwrap(), store.lock().unwrap());
    }
}
