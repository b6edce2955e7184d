//! Reads files one after the other, a batch ahead of the worker.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt, future, mem,
};

use tokio::task::JoinHandle;

use super::{FileSplit, Format};
use crate::{
    connectors::file::FileError,
    error::BoxError,
    source::{Fetched, Progress, SourceReader, Split},
};

/// Reads the files of one subtask.
///
/// The next batch is read on a blocking thread while the worker still has the one before. The task that does so
/// belongs to the reader and not to the future of a `fetch`, so that nothing is lost when that is dropped.
pub struct FileReader<F: Format> {
    format: F,
    waiting: VecDeque<FileSplit>,
    /// Files that were begun, and wait for others.
    parked: Vec<(FileSplit, F::Decoder)>,
    paused: BTreeSet<String>,
    ahead: Option<JoinHandle<Result<Ahead<F>, FileError>>>,
    spare: Option<F::Batch>,
    watching: bool,
}

/// A batch read ahead, and the file it came from.
struct Ahead<F: Format> {
    split: FileSplit,
    decoder: F::Decoder,
    batch: F::Batch,
}

impl<F: Format> FileReader<F> {
    pub(super) fn new(format: F, splits: Vec<FileSplit>, watching: bool) -> Self {
        let waiting = splits.into_iter().filter(|split| !split.done).collect();
        FileReader {
            format,
            waiting,
            parked: Vec::new(),
            paused: BTreeSet::new(),
            ahead: None,
            spare: None,
            watching,
        }
    }

    /// Starts reading on in `open`, or in the next file that is not paused. Does nothing when there is none.
    fn read_ahead(&mut self, open: Option<(FileSplit, F::Decoder)>) {
        let open = open.and_then(|open| self.unless_paused(open)).or_else(|| self.unpark());
        let (mut split, decoder) = match open {
            Some((split, decoder)) => (split, Some(decoder)),
            None => match self.next_file() {
                Some(split) => (split, None),
                None => return,
            },
        };
        let format = self.format.clone();
        let mut batch = self.spare.take().unwrap_or_else(|| format.batch());
        self.ahead = Some(tokio::task::spawn_blocking(move || {
            let mut decoder = match decoder {
                Some(decoder) => decoder,
                None => format.open(&mut split)?,
            };
            format.read(&mut decoder, &mut split, &mut batch)?;
            Ok(Ahead { split, decoder, batch })
        }));
    }
}

impl<F: Format> FileReader<F> {
    /// Parks a file that is ahead of others.
    fn unless_paused(&mut self, open: (FileSplit, F::Decoder)) -> Option<(FileSplit, F::Decoder)> {
        if self.paused.contains(&open.0.id()) {
            self.parked.push(open);
            return None;
        }
        Some(open)
    }

    /// A file that was begun and need not wait any longer.
    fn unpark(&mut self) -> Option<(FileSplit, F::Decoder)> {
        let free = self.parked.iter().position(|(split, _)| !self.paused.contains(&split.id()))?;
        Some(self.parked.remove(free))
    }

    /// The next file to begin.
    fn next_file(&mut self) -> Option<FileSplit> {
        let free = self.waiting.iter().position(|split| !self.paused.contains(&split.id()))?;
        self.waiting.remove(free)
    }

    /// Whether there is something to read, be it later.
    fn has_more(&self) -> bool {
        self.watching || self.ahead.is_some() || !self.parked.is_empty() || !self.waiting.is_empty()
    }
}

impl<F: Format> fmt::Debug for FileReader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReader").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl<F: Format> SourceReader for FileReader<F> {
    type Split = FileSplit;
    type Batch = F::Batch;

    fn batch(&self) -> F::Batch {
        self.format.batch()
    }

    async fn fetch(&mut self, fetched: &mut Fetched<F::Batch, FileSplit>) -> Result<Progress, BoxError> {
        if self.ahead.is_none() {
            self.read_ahead(None);
        }
        let Some(task) = &mut self.ahead else {
            if self.has_more() {
                // Until `add_splits` or `pause`, for which the runtime drops this future.
                future::pending::<()>().await;
            }
            fetched.batch = self.format.batch();
            return Ok(Progress::Finished);
        };
        let done = task.await;
        self.ahead = None;
        let Ahead { split, decoder, batch } = done??;
        self.spare = Some(mem::replace(&mut fetched.batch, batch));
        fetched.advanced.push(split.clone());
        self.read_ahead((!split.done).then_some((split, decoder)));
        Ok(if self.has_more() { Progress::More } else { Progress::Finished })
    }

    fn pause(&mut self, splits: &BTreeSet<String>) -> Result<bool, BoxError> {
        self.paused.clone_from(splits);
        Ok(true)
    }

    async fn add_splits(&mut self, splits: Vec<FileSplit>) -> Result<(), BoxError> {
        self.waiting.extend(splits.into_iter().filter(|split| !split.done));
        Ok(())
    }
}
