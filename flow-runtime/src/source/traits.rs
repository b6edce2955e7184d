//! The public traits of sources.

use std::{
    collections::BTreeSet,
    future::Future,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{error::BoxError, time::Watermark};

/// A part of a source that is read independently of the others, together with the position up to which it has
/// been read: a file and a byte offset, a Kafka partition and the next offset.
///
/// Splits are what a checkpoint remembers of a source. On a restore they are dealt out anew among the subtasks,
/// so the parallelism of a source may change.
pub trait Split: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What names this split among all of its source, whatever its position: `events-3`, `/data/a.txt`.
    fn id(&self) -> String;

    /// Writes the [`id`](Self::id) behind what is in `to`. Asked for every batch, so a split whose id has to be put
    /// together does well to write it here without an allocation.
    fn write_id(&self, to: &mut String) {
        to.push_str(&self.id());
    }

    /// The position, in words for error messages: `offset 17`.
    fn position(&self) -> String;

    /// Whether all of it is read, so that its event time holds back no other split. A split that never ends, or does
    /// not know its end, says `false`.
    fn is_finished(&self) -> bool {
        false
    }
}

/// A buffer of records, filled by a [`SourceReader`] and iterated by the fused chain.
///
/// Items may borrow from the batch, so that a line of text or a Kafka payload is never copied on its way through
/// a chain.
pub trait Batch: Send + 'static {
    /// A record, which may borrow from the batch.
    type Item<'a>
    where
        Self: 'a;

    /// The records that were not iterated yet.
    fn records(&mut self) -> impl Iterator<Item = Self::Item<'_>>;

    /// An error in the data that ended [`records`](Self::records) early, for example a line that does not parse.
    /// Asked after each iteration.
    fn error(&mut self) -> Option<BoxError> {
        None
    }

    /// Where the `index`-th record (from 0) of this batch came from, for error messages: `line 17 of /data/a.txt`.
    fn describe(&self, index: u64) -> Option<String> {
        let _ = index;
        None
    }

    /// What the source itself knows of event time: once these records are read, no record at or before this time is
    /// left in the splits that the batch advances. Holds for a `.watermarks(..)` that follows the source without an
    /// exchange in between, whatever its strategy. Most sources know nothing of it.
    fn watermark(&self) -> Option<Watermark> {
        None
    }

    /// Whose the records are, where one batch holds those of several splits. Event time advances per split then. Without
    /// it, all records are taken to be of the splits that [the batch advances](Fetched::advanced), and if these are
    /// several, they share one event time.
    ///
    /// Asked before [`records`](Self::records), in pipelines with event time.
    fn runs(&self) -> Option<Runs> {
        None
    }
}

/// Of which split the record is that a batch has given last. See [`Batch::runs`].
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The ids of splits, in the order of the records: one for each run of records of the same split.
    pub splits: Vec<String>,
    /// The run of the record that [`Batch::records`] has given last, as an index into `splits`.
    pub current: Arc<AtomicUsize>,
}

/// What one call of [`SourceReader::fetch`] brought.
#[derive(Debug)]
pub struct Fetched<B, S> {
    /// The records; cleared by the reader before it is filled again.
    pub batch: B,
    /// Every split whose position this batch changed, with the position *after* the batch. Empty when handed to
    /// the reader.
    pub advanced: Vec<S>,
}

/// Whether a reader has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The batch holds records (or none, for a mere change of position) and more may come.
    More,
    /// All splits of this reader are read to their end; the batch may hold the last records. With a
    /// [discovery interval](Source::discovery_interval) it is asked again when it has got more splits.
    Finished,
}

/// What a reader may want to know about its place in the job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceContext {
    /// The job's name.
    pub job: String,
    /// The uid of the source's operator.
    pub operator: String,
    /// The index of this subtask, from 0.
    pub subtask: usize,
    /// How many subtasks read this source.
    pub parallelism: usize,
}

impl SourceContext {
    /// For tests of a source without a job.
    pub fn new(
        job: impl Into<String>,
        operator: impl Into<String>,
        subtask: usize,
        parallelism: usize,
    ) -> Self {
        SourceContext { job: job.into(), operator: operator.into(), subtask, parallelism }
    }
}

/// A source: what to read, and from where. It is a description until the job opens it.
///
/// Reading happens on a tokio task, off the worker: it may wait as long as it likes. When the job ends or restarts,
/// the future that waits is dropped, which is how reading is cancelled; [`fetch`](SourceReader::fetch) must
/// therefore lose nothing when its future is dropped.
///
/// See `examples/custom_source.rs` for one of your own.
pub trait Source: Send + Sync + 'static {
    /// What is read independently.
    type Split: Split;
    /// The buffer of records.
    type Batch: Batch;
    /// The reader of a subtask.
    type Reader: SourceReader<Split = Self::Split, Batch = Self::Batch>;

    /// All the splits there are now, at their start positions. Called once when the job starts and then at each
    /// [`discovery_interval`](Self::discovery_interval). Splits that the checkpoint knows keep its position; the
    /// order decides which subtask reads which split (`i % parallelism`).
    ///
    /// `restored` says that the job resumes from a checkpoint: what is found now and was not known then must be
    /// read from its beginning, even where a first start would have begun at the end.
    fn discover(&self, restored: bool) -> impl Future<Output = Result<Vec<Self::Split>, BoxError>> + Send;

    /// How often to look for new splits while the job runs; `None` for never. A source that looks for more does not
    /// end.
    fn discovery_interval(&self) -> Option<Duration> {
        None
    }

    /// Opens a reader for one subtask. `splits` may be empty.
    fn open(
        &self,
        cx: SourceContext,
        splits: Vec<Self::Split>,
    ) -> impl Future<Output = Result<Self::Reader, BoxError>> + Send;

    /// Whether reading never waits (a collection, a counter), so that the worker may call the reader itself and
    /// save the hand-over from a task. A reader that waits all the same is woken.
    fn inline(&self) -> bool {
        false
    }
}

/// Reads the splits of one subtask.
pub trait SourceReader: Send + 'static {
    /// As in [`Source`].
    type Split: Split;
    /// As in [`Source`].
    type Batch: Batch;

    /// An empty batch; a few are made and then used again and again.
    fn batch(&self) -> Self::Batch;

    /// Waits for records and fills `fetched` with them. Must be cancel-safe. A good batch takes a worker 50
    /// microseconds to 2 milliseconds: some thousand records, or 256 KiB of text.
    fn fetch(
        &mut self,
        fetched: &mut Fetched<Self::Batch, Self::Split>,
    ) -> impl Future<Output = Result<Progress, BoxError>> + Send;

    /// Which splits not to read for now, by id, because they are [ahead of the others]; all others are to be read. Called
    /// between fetches when that changes. When none is left to be read, and some are paused, a fetch waits.
    ///
    /// Returns whether the reader can do so; one that cannot reads on.
    ///
    /// [ahead of the others]: crate::watermark::WatermarkStrategy::with_alignment
    fn pause(&mut self, splits: &BTreeSet<String>) -> Result<bool, BoxError> {
        let _ = splits;
        Ok(false)
    }

    /// More splits for this reader, found while the job runs.
    fn add_splits(&mut self, splits: Vec<Self::Split>) -> impl Future<Output = Result<(), BoxError>> + Send {
        let _ = splits;
        async { Ok(()) }
    }
}

/// A source that can be read again from any position it has reported, as exactly once and at least once need.
///
/// A marker: implement it for a [`Source`] whose reader, opened with a split of an earlier run, returns the same
/// records from there as it did then.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be rewound, so this pipeline cannot guarantee that no record is lost",
    label = "this source forgets what it has delivered",
    note = "after a crash the job reads again from the last checkpoint: choose `guarantee = at_most_once`, or a source that can rewind, as files and Kafka can"
)]
pub trait Rewindable: Source {}

/// A source that ends, as `mode = batch` needs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no end, so a batch pipeline over it would never give a result",
    label = "this source never ends",
    note = "choose `mode = streaming`, or bound the source"
)]
pub trait Bounded: Source {}
