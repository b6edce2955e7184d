//! The committing half: it produces staged epochs.

use std::{fmt, sync::Arc};

use super::{
    Staged,
    check::Limits,
    marker::{Mark, Owner, Verdict},
    producer::{Class, Fault},
    session::{Session, read_mark},
    setup::Setup,
};
use crate::{
    checkpoint::CheckpointId,
    connectors::kafka::client::{blocking, drop_elsewhere},
    error::BoxError,
    sink::{CommitError, Committed, SinkCommitter},
};

/// Produces the staged epochs of one subtask, with a producer of its own.
pub struct KafkaCommitter {
    shared: Arc<Shared>,
    /// Absent while a call is at work, and after one failed.
    session: Option<Session>,
}

/// What does not change.
struct Shared {
    setup: Arc<Setup>,
    limits: Limits,
    owner: Owner,
    subtask: usize,
}

impl KafkaCommitter {
    /// Also returns where the marker stands.
    pub(super) async fn open(
        setup: Arc<Setup>,
        limits: Limits,
        owner: Owner,
        subtask: usize,
    ) -> Result<(Self, u64), BoxError> {
        let shared = Arc::new(Shared { setup, limits, owner, subtask });
        let opening = Arc::clone(&shared);
        let opened = blocking(move || {
            Ok(opening.session().map(|session| {
                let epoch = session.mark().map_or(0, |mark| mark.epoch);
                (session, epoch)
            }))
        });
        let (session, epoch) = opened.await?.map_err(|fault| shared.tell(fault.text))?;
        Ok((KafkaCommitter { shared, session: Some(session) }, epoch))
    }
}

impl SinkCommitter for KafkaCommitter {
    type Handle = Staged;

    async fn commit(&mut self, checkpoint: CheckpointId, staged: &Staged) -> Result<Committed, CommitError> {
        let (shared, session, staged) = (Arc::clone(&self.shared), self.session.take(), staged.clone());
        // A call that is dropped half way leaves its thread to end by itself: by then its producer is fenced.
        let called = blocking(move || Ok(shared.commit(session, checkpoint, &staged)));
        let committed = called.await.map_err(CommitError::Retry)?;
        let (session, committed) = committed.map_err(|fault| {
            let error = self.shared.tell(format!("checkpoint {checkpoint}: {}", fault.text));
            match fault.class {
                Class::Permanent => CommitError::Lost(error),
                Class::Transient | Class::Fenced => CommitError::Retry(error),
            }
        })?;
        self.session = Some(session);
        Ok(committed)
    }
}

impl Shared {
    fn tell(&self, text: String) -> BoxError {
        if text.starts_with("sink `") {
            text.into()
        } else {
            format!("{}: {text}", self.owner.place(self.subtask)).into()
        }
    }

    /// Becomes the only producer, unless another attempt has taken over.
    ///
    /// Being fenced does not tell: a broker does the same to a transaction that took too long. The marker does. It is
    /// looked at before as well, so that who is not the owner fences nobody.
    fn session(&self) -> Result<Session, Fault> {
        let id = self.owner.id(self.subtask);
        self.owned(read_mark(&self.setup, &id)?.as_ref())?;
        let session = Session::open(&self.setup, &self.limits, &id)?;
        self.owned(session.mark())?;
        Ok(session)
    }

    fn owned(&self, mark: Option<&Mark>) -> Result<(), Fault> {
        match mark {
            None => Err(Fault::permanent(self.owner.gone(self.subtask))),
            Some(mark) if self.owner.owns(mark) => Ok(()),
            Some(_) => Err(Fault::permanent(self.owner.taken_over(self.subtask))),
        }
    }

    fn commit(
        &self,
        session: Option<Session>,
        checkpoint: CheckpointId,
        staged: &Staged,
    ) -> Result<(Session, Committed), Fault> {
        let mut session = match session {
            Some(session) => session,
            None => self.session()?,
        };
        let committed = apply(&mut session, &self.owner, self.subtask, checkpoint, staged);
        match committed {
            Ok(committed) => Ok((session, committed)),
            // Fenced by another attempt or by a timeout: the marker tells, and if it was the former, that is the end.
            Err(fault) if fault.class == Class::Fenced => {
                drop(session);
                self.owned(read_mark(&self.setup, &self.owner.id(self.subtask))?.as_ref())?;
                Err(Fault {
                    text: format!(
                        "{} (after {:?} a transaction is given up: `.transaction_timeout(..)`)",
                        fault.text, self.setup.transaction_timeout
                    ),
                    ..fault
                })
            }
            Err(fault) => Err(fault),
        }
    }
}

/// Writes the epoch, unless it is written.
pub(super) fn apply(
    session: &mut Session,
    owner: &Owner,
    subtask: usize,
    checkpoint: CheckpointId,
    staged: &Staged,
) -> Result<Committed, Fault> {
    let Some(mark) = session.mark() else {
        return Err(Fault::permanent(owner.gone(subtask)));
    };
    match owner.judge(subtask, mark, checkpoint, staged) {
        Verdict::Written => Ok(Committed::Already),
        Verdict::Refused(why) => Err(Fault::permanent(why)),
        Verdict::Write => {
            let next = Mark { epoch: checkpoint.0, owner: owner.attempt, writer: staged.attempt };
            session.write(Some(staged), next)?;
            Ok(Committed::Now)
        }
    }
}

impl Drop for KafkaCommitter {
    fn drop(&mut self) {
        drop_elsewhere(self.session.take());
    }
}

impl fmt::Debug for KafkaCommitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaCommitter")
            .field("id", &self.shared.owner.id(self.shared.subtask))
            .finish_non_exhaustive()
    }
}
