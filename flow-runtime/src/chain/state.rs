//! The state of an operator at barriers.

use std::{rc::Rc, time::Instant};

use futures_util::future::BoxFuture;

use super::Environment;
use crate::{
    checkpoint::{CheckpointId, NewSegment, PartFile, StateLog, StatePart},
    error::Error,
    state::{KeyGroups, StatePort},
    worker::Tries,
};

/// The writing of a state's part.
pub(super) type StateWrite = BoxFuture<'static, Result<StatePart, Error>>;

/// The state of one operator in one subtask, with the files that hold it.
pub(crate) struct StateParts {
    uid: Rc<str>,
    subtask: usize,
    groups: KeyGroups,
    port: Rc<dyn StatePort>,
    /// None where no checkpoint is there to go back to.
    log: Option<StateLog>,
    tokio: tokio::runtime::Handle,
}

impl StateParts {
    /// `files` hold what was restored, if changes may be added to them.
    pub(crate) fn new(
        uid: Rc<str>,
        subtask: usize,
        groups: KeyGroups,
        port: Rc<dyn StatePort>,
        files: Vec<PartFile>,
        environment: &Environment,
    ) -> Self {
        let log = environment.goes_back.then(|| {
            let name = format!("{:016x}-{uid}-{subtask}", environment.attempt);
            let place = (environment.store.clone(), environment.compression);
            StateLog::start(&environment.tokio, place, name, port.merge(), files)
        });
        StateParts { uid, subtask, groups, port, log, tokio: environment.tokio.clone() }
    }

    /// A barrier. What the state is now is collected in the following turns, encoded and written elsewhere.
    pub(super) fn barrier(&self, checkpoint: CheckpointId, tries: Tries) -> Option<StateWrite> {
        let log = self.log.as_ref()?;
        if log.broken() {
            self.port.set_whole(true);
        }
        let segment = self.port.close(self.groups).map(|snapshot| NewSegment {
            whole: snapshot.whole,
            encoded: self.tokio.spawn_blocking(snapshot.encode),
        });
        let (written, uid, subtask) =
            (log.append(checkpoint, segment, tries), self.uid.to_string(), self.subtask);
        Some(Box::pin(async move {
            match written.await {
                Ok(files) => Ok(StatePart { uid, subtask, files }),
                Err(error) => Err(error.of(&uid).into()),
            }
        }))
    }

    /// Collects for the last barrier, until a time. Returns whether nothing is left.
    pub(crate) fn collect(&self, until: Instant) -> bool {
        self.port.collect(until)
    }
}
