//! What can go wrong with a file that is read.

use std::io;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Nothing to read.
    #[error("no file matches `{pattern}`; give an existing file, a directory or a glob such as `logs/*.txt`")]
    NothingMatches {
        /// What was looked for.
        pattern: String,
    },
    /// The pattern is no valid glob.
    #[error("`{pattern}` is not a valid glob: {cause}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A path that cannot be written to a checkpoint.
    #[error("the path `{path}` is not valid UTF-8; rename it")]
    Path {
        /// The path, as far as it can be shown.
        path: String,
    },
    /// A file is gone.
    #[error("`{path}` no longer exists, but was read only up to {position}; put it back, or start afresh")]
    Vanished {
        /// The file.
        path: String,
        /// How far it had been read.
        position: String,
    },
    /// A file is shorter than it was.
    #[error("`{path}` has {now} bytes, but had {before}; a file must not shrink while a job reads it")]
    Shrank {
        /// The file.
        path: String,
        /// Its length when it was found, or how far it had been read.
        before: u64,
        /// Its length now.
        now: u64,
    },
    /// The operating system refused.
    #[error("cannot read `{path}`: {cause}")]
    Read {
        /// The file or directory.
        path: String,
        /// Why.
        cause: io::Error,
    },
    /// Something that looks like no line of text.
    #[error("a line of `{path}` is longer than {limit} bytes (from byte {offset}); is it a text file?")]
    LineTooLong {
        /// The file.
        path: String,
        /// Where the line starts.
        offset: u64,
        /// The longest that is read.
        limit: usize,
    },
    /// A record that does not parse.
    #[error("{place}: {cause}; correct it, or ignore such rows with `.skip_invalid()`")]
    Invalid {
        /// The file and the line.
        place: String,
        /// Why.
        cause: String,
    },
    /// Bytes that are no text.
    #[error("{0}")]
    NotUtf8(String),
}

impl FileError {
    pub(super) fn read(path: &str, cause: io::Error) -> Self {
        FileError::Read { path: path.to_owned(), cause }
    }
}
