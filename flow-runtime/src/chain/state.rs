//! The state of an operator at barriers.

use std::{
    ops::Deref,
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use futures_util::future::BoxFuture;

use super::Environment;
use crate::{
    checkpoint::{
        CheckpointError, CheckpointId, Compression, NewSegment, OperatorStatePart, PartFile, StateLog,
        StatePart, Store,
    },
    error::Error,
    state::{Items, KeyGroups, Left, OperatorPort, StatePort},
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

    /// Collects for the last barrier, until a time or until there is enough to be encoded.
    pub(crate) fn collect(&self, until: Instant) -> Left {
        self.port.collect(until)
    }
}

/// The writing of a part of operator state; none where there are no items.
pub(crate) type OperatorWrite = BoxFuture<'static, Result<Option<OperatorStatePart>, Error>>;

/// A list of one operator in one subtask that belongs to no key.
pub(crate) struct OperatorStateParts<P = Rc<dyn OperatorPort>> {
    uid: String,
    name: &'static str,
    subtask: usize,
    port: P,
    /// The checkpoint that the last barrier was for.
    last: AtomicU64,
    written: Written,
    place: (Store, Compression),
    /// For the names of files.
    label: String,
}

/// The part that was written last, and for which checkpoint.
type Written = Arc<Mutex<Option<(CheckpointId, Option<OperatorStatePart>)>>>;

impl<P: Deref<Target: OperatorPort>> OperatorStateParts<P> {
    pub(crate) fn new(
        uid: &str,
        name: &'static str,
        subtask: usize,
        port: P,
        environment: &Environment,
    ) -> Self {
        let label = format!("{:016x}-{uid}-{name}-{subtask}", environment.attempt);
        let (last, place) = (environment.last, (environment.store.clone(), environment.compression));
        let (uid, last) = (uid.to_owned(), AtomicU64::new(last.0));
        OperatorStateParts { uid, name, subtask, port, last, written: Written::default(), place, label }
    }

    /// A barrier. The items are copied now, encoded and written elsewhere.
    pub(crate) fn barrier(&self, checkpoint: CheckpointId, tries: Tries) -> Option<OperatorWrite> {
        let before = CheckpointId(self.last.swap(checkpoint.0, Ordering::Relaxed));
        let (written, place) = (Arc::clone(&self.written), self.place.clone());
        let (uid, label) = (self.uid.clone(), self.label.clone());
        // What is written already may be named again only if the checkpoint before named it, too: retention deletes
        // what no complete checkpoint names.
        let items = {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            let known = written.as_mut().filter(|(of, _)| *of == before);
            match (self.port.close(known.is_none()), known) {
                (Some(items), _) => items,
                (None, Some((of, part))) => {
                    *of = checkpoint;
                    let part = part.clone();
                    return Some(Box::pin(async move { Ok(part) }));
                }
                (None, None) => return None,
            }
        };
        let part = OperatorStatePart {
            uid: uid.clone(),
            name: self.name.to_owned(),
            subtask: self.subtask,
            items: items.count,
            file: PartFile { path: String::new(), bytes: 0, crc: 0 },
        };
        Some(Box::pin(async move {
            let part = write(items, part, checkpoint, tries, place, label).await.map_err(|e| e.of(&uid))?;
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            if written.as_ref().is_none_or(|(of, _)| *of < checkpoint) {
                *written = Some((checkpoint, part.clone()));
            }
            Ok(part)
        }))
    }
}

/// Encodes the items and writes them, if there are any.
async fn write(
    items: Items,
    mut part: OperatorStatePart,
    checkpoint: CheckpointId,
    tries: Tries,
    (store, compression): (Store, Compression),
    label: String,
) -> Result<Option<OperatorStatePart>, CheckpointError> {
    if items.count == 0 {
        return Ok(None);
    }
    let failed = |cause: tokio::task::JoinError| CheckpointError::Encode { cause: cause.to_string() };
    let bytes = tokio::task::spawn_blocking(items.encode).await.map_err(failed)??;
    part.file = tries.run(|| store.put_compressed(checkpoint, &label, bytes.clone(), compression)).await?;
    Ok(Some(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{OperatorState, Share};

    fn list(state: &OperatorState<Vec<u32>>, store: &Store) -> OperatorStateParts {
        OperatorStateParts {
            uid: "rules".into(),
            name: "list",
            subtask: 0,
            port: Rc::new(state.clone()) as Rc<dyn OperatorPort>,
            last: AtomicU64::new(0),
            written: Written::default(),
            place: (store.clone(), Compression::None),
            label: "rules-list-0".to_owned(),
        }
    }

    async fn written(write: Option<OperatorWrite>) -> Option<OperatorStatePart> {
        write.expect("there is a checkpoint to go back to").await.expect("memory takes everything")
    }

    #[tokio::test]
    async fn what_has_not_changed_is_not_written_again() {
        let (state, store) = (OperatorState::of(vec![1, 2]), Store::in_memory());
        let list = list(&state, &store);
        let barrier = |n| list.barrier(CheckpointId(n), Tries::of(false));
        let first = written(barrier(1)).await.expect("two items");
        assert_eq!((first.items, first.name.as_str()), (2, "list"));
        assert_eq!(written(barrier(2)).await.as_ref(), Some(&first));
        assert_eq!(written(barrier(3)).await.as_ref(), Some(&first));

        state.borrow_mut().push(3);
        let second = written(barrier(4)).await.expect("three items");
        assert_ne!(first.file, second.file);
        assert_eq!(written(barrier(5)).await.as_ref(), Some(&second));

        let restored = OperatorState::<Vec<u32>>::of(Vec::new());
        let bytes = store.get_part(&second.file).await.unwrap();
        OperatorPort::restore(&restored, &[bytes], Share::All).unwrap();
        assert_eq!(*restored.borrow(), [1, 2, 3]);

        state.borrow_mut().clear();
        assert_eq!(written(barrier(6)).await, None);
        assert_eq!(written(barrier(7)).await, None, "and that is known");
    }

    #[tokio::test]
    async fn what_was_given_up_is_written_with_the_next_checkpoint() {
        let (state, store) = (OperatorState::of(vec![1]), Store::in_memory());
        let list = list(&state, &store);
        let barrier = |n| list.barrier(CheckpointId(n), Tries::of(false));
        let first = written(barrier(1)).await.expect("an item");
        state.borrow_mut().push(2);
        drop(barrier(2));
        let third = written(barrier(3)).await.expect("two items");
        assert_eq!(third.items, 2, "although nothing has changed since");

        // Written late: the checkpoint after it does not name its file, which may go with the next.
        let late = barrier(4);
        state.borrow_mut().push(3);
        let fifth = barrier(5);
        assert_eq!(written(late).await.as_ref(), Some(&third));
        let sixth = barrier(6);
        let fifth = written(fifth).await.expect("three items");
        let sixth = written(sixth).await.expect("three items");
        assert_eq!((fifth.items, sixth.items), (3, 3));
        assert_ne!(first.file, sixth.file);
        assert_eq!(written(barrier(7)).await.as_ref(), Some(&sixth));
    }
}
