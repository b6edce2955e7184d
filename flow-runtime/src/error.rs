//! What can go wrong, each with the place where it did and what to do.

use std::fmt;

/// Any error of user code or of a connector.
///
/// Every `?` on a type that implements [`std::error::Error`] converts into it, and so does a string.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Where in a job something happened: the operator by uid, its subtask, and the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The uid of the operator, for example `words.flat_map`.
    pub operator: String,
    /// Which parallel instance of the operator, from 0.
    pub subtask: usize,
    /// The record that was being processed, as its source describes it.
    pub record: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operator `{}` (subtask {})", self.operator, self.subtask)?;
        match &self.record {
            Some(record) => write!(f, " at {record}"),
            None => Ok(()),
        }
    }
}

/// Why a job could not run, or did not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A closure of the pipeline returned an error.
    #[error("{place}: {cause}")]
    User {
        /// The operator and the record.
        place: Place,
        /// What the closure returned.
        cause: BoxError,
    },
    /// A closure of the pipeline panicked.
    #[error("{place}: panicked: {message}")]
    Panic {
        /// The operator and the record.
        place: Place,
        /// The panic's message.
        message: String,
    },
    /// A source could not be read.
    #[error("{place}: the source failed: {cause}")]
    Source {
        /// The source, and the split where known.
        place: Place,
        /// What the connector said.
        cause: BoxError,
    },
    /// A sink could not write or commit.
    #[error("{place}: the sink failed: {cause}")]
    Sink {
        /// The sink.
        place: Place,
        /// What the connector said.
        cause: BoxError,
    },
    /// A checkpoint could not be written or read.
    #[error("checkpoint: {0}")]
    Checkpoint(#[from] crate::checkpoint::CheckpointError),
    /// The job's options contradict each other or the pipeline.
    #[error("{0}")]
    Config(String),
}

impl Error {
    /// Whether another attempt from the last checkpoint can help: a wrong configuration stays wrong.
    pub(crate) fn restartable(&self) -> bool {
        !matches!(self, Error::Config(_)) && !matches!(self, Error::Checkpoint(e) if !e.restartable())
    }
}

/// The message of a caught panic.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not text".to_owned()
    }
}
