//! Places where a test lets the process die, or an operation fail: between every two steps of checkpoints, commits and
//! recovery. Compiled to nothing unless feature `failpoints` is on.

/// Declares the points with their names.
macro_rules! points {
    ($($(#[doc = $doc:literal])+ $point:ident = $name:literal,)*) => {
        /// A place between two steps.
        #[derive(Clone, Copy, Debug)]
        #[cfg_attr(not(feature = "failpoints"), allow(dead_code, reason = "named, and compiled to nothing"))]
        pub(crate) enum Point {
            $($(#[doc = $doc])+ $point,)*
        }

        impl Point {
            #[cfg(feature = "failpoints")]
            pub(crate) const NAMES: &'static [&'static str] = &[$($name,)*];

            #[cfg(feature = "failpoints")]
            const fn name(self) -> &'static str {
                match self {
                    $(Point::$point => $name,)*
                }
            }
        }
    };
}

points! {
    /// The state of a chain has been taken, and nothing of it written.
    SnapshotTaken = "snapshot.taken",
    /// A state is encoded; its file comes next.
    SnapshotEncoded = "snapshot.encoded",
    /// The file of a state is written; those of others may not be.
    StateWritten = "snapshot.written",
    /// A file of a checkpoint is about to be written; may fail.
    PutPart = "store.part",
    /// The manifest is about to be written; may fail.
    PutManifest = "store.manifest",
    /// The manifest is written, and nobody knows.
    ManifestWritten = "manifest.written",
    /// The sink has all records of the epoch.
    BeforePreCommit = "sink.before_pre_commit",
    /// The sink has pre-committed; the handle is in memory only.
    PreCommitted = "sink.pre_committed",
    /// The handle is written; the manifest is not.
    HandleWritten = "sink.handle_written",
    /// The checkpoint is complete; the commit comes next.
    BeforeCommit = "sink.before_commit",
    /// Committed, and nobody knows.
    Committed = "sink.committed",
    /// Old checkpoints are about to be deleted.
    BeforeRetention = "retention.before",
    /// Some files are deleted.
    FileDeleted = "retention.deleted",
    /// The checkpoint to resume from has been chosen.
    RestoreChosen = "recovery.chosen",
    /// A sink is about to settle what the checkpoint carried.
    BeforeRecover = "recovery.before_sink",
    /// A sink has settled everything and written nothing yet.
    Recovered = "recovery.sink_recovered",
    /// The files of an epoch are synced under their hidden names.
    FilesSynced = "file.synced",
    /// A finished file has its name, and still the hidden one.
    FileLinked = "file.linked",
    /// A file is finished; others of the same epoch may not be.
    FilePublished = "file.published",
    /// The ledger is a step further, and the rows are not written.
    LedgerAdvanced = "ledger.advanced",
    /// Ledger and rows are written, and nothing is committed.
    LedgerRowsWritten = "ledger.rows_written",
    /// The server has committed, and nobody knows.
    LedgerCommitted = "ledger.committed",
    /// All rows of the epoch are at the server, and nothing is prepared.
    PreparedRowsWritten = "prepared.rows_written",
    /// The server has prepared the transaction, and nobody knows its name.
    Prepared = "prepared.prepared",
    /// The server has committed it, and nobody knows.
    PreparedCommitted = "prepared.committed",
    /// Recovery has made this attempt the owner, and settled nothing.
    PreparedTakenOver = "prepared.taken_over",
    /// Recovery has committed what the checkpoint carried, and rolled nothing back.
    PreparedSettled = "prepared.settled",
    /// A Kafka transaction is open.
    KafkaBegun = "kafka.begun",
    /// All records are handed to the producer.
    KafkaProduced = "kafka.produced",
    /// The marker has been moved, within the transaction.
    KafkaMarked = "kafka.marked",
    /// Records and marker are at the brokers, and nothing is committed.
    KafkaFlushed = "kafka.flushed",
    /// The brokers have committed, and nobody knows.
    KafkaCommitted = "kafka.committed",
}

/// A test may let the process die here.
#[inline(always)]
pub(crate) fn reach(point: Point) {
    #[cfg(feature = "failpoints")]
    let _: Option<()> = fail::eval(point.name(), |_| ());
    #[cfg(not(feature = "failpoints"))]
    let _ = point;
}

/// A test may let the process die here, or the operation that follows fail.
///
/// # Errors
/// When a test says so.
#[inline(always)]
pub(crate) fn may_fail(point: Point) -> Result<(), std::io::Error> {
    #[cfg(feature = "failpoints")]
    if fail::eval(point.name(), |_| ()).is_some() {
        return Err(std::io::Error::other(format!("failpoint `{}`", point.name())));
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = point;
    Ok(())
}
