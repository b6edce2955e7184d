//! Running a chain's loop: user code that fails or panics becomes an error with its place.

use std::rc::Rc;

use super::{ChainError, Fault, position::panicked_at};
use crate::{
    error::{Error, Place},
    worker::in_user_code,
};

/// Knows the operators of a chain by name.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) uids: Rc<[Rc<str>]>,
    pub(crate) subtask: usize,
}

impl Work {
    /// Runs the loop, and catches what it throws.
    #[inline]
    pub(crate) fn run(&self, f: impl FnOnce() -> Result<(), ChainError>) -> Result<(), ChainError> {
        in_user_code(f).unwrap_or_else(|message| {
            let (operator, record) = panicked_at();
            Err(ChainError { operator, record, fault: Fault::Panic(message) })
        })
    }

    /// Names the place of an error.
    pub(crate) fn place(&self, error: ChainError, record: Option<String>) -> Error {
        let place = Place { operator: self.uids[error.operator].to_string(), subtask: self.subtask, record };
        match error.fault {
            Fault::User(cause) => Error::User { place, cause },
            Fault::Sink(cause) => Error::Sink { place, cause },
            Fault::Source(cause) => Error::Source { place, cause },
            Fault::Panic(message) => Error::Panic { place, message },
        }
    }
}
