//! The files that a subtask writes, one after the other.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use flow_macros::TransactionHandle;
use serde::{Deserialize, Serialize};

use super::names;
use crate::{
    checkpoint::CheckpointId,
    error::BoxError,
    failpoint::{Point, reach},
    sink::SinkContext,
};

/// Where a subtask writes, and under which names.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) dir: PathBuf,
    pub(super) prefix: String,
    pub(super) extension: &'static str,
    pub(super) cx: SinkContext,
}

/// The files of one subtask and checkpoint, complete on disk under hidden names: what a checkpoint remembers.
#[derive(Clone, Debug, PartialEq, Eq, TransactionHandle)]
pub struct PendingFiles {
    /// In the order in which they were written.
    pub files: Vec<Finished>,
}

/// A file that is written and will be renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Its hidden name, which no other attempt uses.
    pub hidden: String,
    /// Its name once it is committed.
    pub name: String,
    /// Its length, by which, with the checksum, it is recognized after it was renamed.
    pub bytes: u64,
    /// The CRC-32 of its content.
    pub crc32: u32,
}

/// Writes files; blocking.
pub(super) struct Output {
    place: Arc<Place>,
    roll_at: u64,
    open: Option<Open>,
    closed: Vec<Closed>,
    /// How many files this attempt has begun.
    begun: u64,
}

struct Open {
    file: File,
    hidden: String,
    bytes: u64,
    crc32: crc32fast::Hasher,
}

struct Closed {
    hidden: String,
    bytes: u64,
    crc32: u32,
}

impl Output {
    pub(super) fn new(place: Arc<Place>, roll_at: u64) -> Self {
        Output { place, roll_at, open: None, closed: Vec::new(), begun: 0 }
    }

    /// Appends whole records.
    pub(super) fn write(&mut self, bytes: &[u8], header: &[u8]) -> Result<(), BoxError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let open = none.insert(Open::create(&self.place, self.begun)?);
                self.begun += 1;
                open.append(&self.place, header)?;
                open
            }
        };
        open.append(&self.place, bytes)?;
        if open.bytes >= self.roll_at {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), BoxError> {
        if let Some(Open { file, hidden, bytes, crc32 }) = self.open.take() {
            file.sync_all().map_err(|error| cannot("write", &self.place.dir.join(&hidden), error))?;
            self.closed.push(Closed { hidden, bytes, crc32: crc32.finalize() });
        }
        Ok(())
    }

    /// Ends the files of this checkpoint, so that they survive a crash. `None` when there are none.
    pub(super) fn finish(&mut self, checkpoint: CheckpointId) -> Result<Option<PendingFiles>, BoxError> {
        self.close()?;
        if self.closed.is_empty() {
            return Ok(None);
        }
        sync_directory(&self.place.dir)?;
        reach(Point::FilesSynced);
        let Place { prefix, extension, cx, .. } = &*self.place;
        let named = |(number, Closed { hidden, bytes, crc32 })| Finished {
            name: names::finished(prefix, extension, cx.subtask, checkpoint, number),
            hidden,
            bytes,
            crc32,
        };
        Ok(Some(PendingFiles { files: self.closed.drain(..).enumerate().map(named).collect() }))
    }
}

impl Open {
    fn create(place: &Place, number: u64) -> Result<Self, BoxError> {
        let hidden = names::hidden(&place.cx, number);
        let path = place.dir.join(&hidden);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| cannot("create", &path, error))?;
        Ok(Open { file, hidden, bytes: 0, crc32: crc32fast::Hasher::new() })
    }

    fn append(&mut self, place: &Place, bytes: &[u8]) -> Result<(), BoxError> {
        self.file.write_all(bytes).map_err(|error| cannot("write", &place.dir.join(&self.hidden), error))?;
        self.crc32.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// An error that names what was done to which file.
pub(super) fn cannot(verb: &str, path: &Path, error: io::Error) -> BoxError {
    format!("cannot {verb} `{}`: {error}", path.display()).into()
}

/// Makes the names in a directory survive a crash.
pub(super) fn sync_directory(dir: &Path) -> Result<(), BoxError> {
    // Elsewhere a directory cannot be opened, and renames are durable by themselves or not at all.
    if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| cannot("sync", dir, error))?;
    }
    Ok(())
}
