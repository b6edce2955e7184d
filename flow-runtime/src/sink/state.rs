//! What a sink remembers beside its transactions: lists that checkpoints keep.
//!
//! A writer's task asks for them when it is opened, changes them as it likes, and after each pre-commit they are copied
//! there, encoded and written as those of other operators are ([`OperatorStateParts`]).

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use super::SinkContext;
use crate::{
    chain::{Environment, OperatorStateParts, OperatorWrite},
    checkpoint::{CheckpointError, CheckpointId},
    error::BoxError,
    state::{Held, Items, OperatorPort, Redistribution, Share, StateItems},
    worker::Tries,
};

/// What a sink's subtask remembers across checkpoints, made by [`SinkContext::operator_state`]. Clones are the same.
#[derive(Debug, Default)]
pub struct SinkState<C>(Arc<Mutex<Held<C>>>);

impl<C> Clone for SinkState<C> {
    fn clone(&self) -> Self {
        SinkState(Arc::clone(&self.0))
    }
}

impl<C> SinkState<C> {
    /// Reads it.
    pub fn read<R>(&self, f: impl FnOnce(&C) -> R) -> R {
        f(&self.held().content)
    }

    /// Changes it. A state that nobody has changed since the last checkpoint is not written again.
    pub fn update<R>(&self, f: impl FnOnce(&mut C) -> R) -> R {
        let mut held = self.held();
        held.changed = true;
        f(&mut held.content)
    }

    fn held(&self) -> MutexGuard<'_, Held<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: StateItems> OperatorPort for SinkState<C> {
    fn restore(&self, parts: &[Bytes], share: Share) -> Result<(), CheckpointError> {
        self.held().restore(parts, share)
    }

    fn close(&self, all: bool) -> Option<Items> {
        self.held().close(all)
    }
}

/// Where the states of a sink's subtask are.
#[derive(Clone, Default)]
pub(crate) enum States {
    /// Nowhere: no job runs the sink.
    #[default]
    Unkept,
    /// Not in this call.
    Refused,
    Kept(Arc<Kept>),
}

/// The states of one subtask.
pub(crate) struct Kept {
    environment: Arc<Environment>,
    states: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    states: Vec<(&'static str, Box<dyn Any + Send>)>,
    lists: Vec<OperatorStateParts<Arc<dyn OperatorPort + Send + Sync>>>,
    /// No checkpoint has been without those that are there.
    opened: bool,
}

impl States {
    pub(crate) fn kept(environment: &Arc<Environment>) -> Self {
        States::Kept(Arc::new(Kept { environment: Arc::clone(environment), states: Mutex::default() }))
    }

    /// The sink is open: from now on checkpoints hold what it has asked for, and nothing else.
    pub(super) fn opened(&self) {
        if let States::Kept(kept) = self {
            kept.asked().opened = true;
        }
    }

    /// A barrier, behind the pre-commit.
    pub(super) fn barrier(&self, checkpoint: CheckpointId, tries: Tries) -> Vec<OperatorWrite> {
        match self {
            States::Kept(kept) => {
                kept.asked().lists.iter().filter_map(|list| list.barrier(checkpoint, tries)).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Kept {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("States")
    }
}

impl SinkContext {
    /// State of this subtask that belongs to no record: a list whose items are in every checkpoint, as they are when
    /// [`pre_commit`](super::SinkWriter::pre_commit) has returned, and are there again when the job goes on, also where
    /// the sink then has more or fewer subtasks. To be asked for in [`open`](super::Sink::open) (or
    /// [`opened`](super::TwoPhaseCommit::opened)), where it holds what the last checkpoint does; later on, it is the same
    /// one again. `name` tells several of one sink apart, across versions of the program.
    ///
    /// It is copied at every checkpoint at which it has changed, so it is for what is small. What a transaction needs for
    /// its commit belongs into its handle.
    ///
    /// ```
    /// use flow::{BoxError, Redistribution, sink::{SinkContext, SinkState}};
    ///
    /// /// The files that are written and not announced yet: whoever goes on announces them.
    /// struct Files {
    ///     unannounced: SinkState<Vec<String>>,
    /// }
    ///
    /// impl Files {
    ///     fn open(cx: &SinkContext) -> Result<Self, BoxError> {
    ///         Ok(Files { unannounced: cx.operator_state("unannounced", Redistribution::Even)? })
    ///     }
    ///
    ///     fn written(&self, name: &str) {
    ///         self.unannounced.update(|files| files.push(name.to_owned()));
    ///     }
    ///
    ///     fn announce(&self) -> Vec<String> {
    ///         self.unannounced.update(std::mem::take)
    ///     }
    /// }
    ///
    /// let files = Files::open(&SinkContext::new("job", "out"))?;
    /// files.written("part-0");
    /// assert_eq!(files.announce(), ["part-0"]);
    /// # Ok::<_, BoxError>(())
    /// ```
    ///
    /// # Errors
    /// When the checkpoint holds items of another type under this name, when this is another type than before, and when it
    /// is asked for the first time after the sink was opened, since checkpoints would have been without it.
    pub fn operator_state<C: StateItems + Default + Send>(
        &self,
        name: &'static str,
        redistribution: Redistribution,
    ) -> Result<SinkState<C>, BoxError> {
        let kept = match &self.states {
            States::Unkept => return Ok(SinkState::default()),
            States::Refused => {
                return Err(refused(self, name, "is there when the sink is opened, and not here"));
            }
            States::Kept(kept) => kept,
        };
        let mut asked = kept.asked();
        if let Some((_, state)) = asked.states.iter().find(|(known, _)| *known == name) {
            let state = state.downcast_ref::<SinkState<C>>().cloned();
            return state.ok_or_else(|| refused(self, name, "was asked for as another type before"));
        }
        if asked.opened {
            return Err(refused(self, name, "has to be asked for when the sink is opened"));
        }
        let state = SinkState::<C>::default();
        let (environment, subtask) = (&kept.environment, self.subtask);
        let place = (&*self.operator, subtask, self.parallelism);
        environment
            .restore_list(place, name, redistribution, &state)
            .map_err(|error| refused(self, name, &format!("cannot be restored: {error}")))?;
        if environment.keeps(redistribution, subtask) {
            let port: Arc<dyn OperatorPort + Send + Sync> = Arc::new(state.clone());
            asked.lists.push(OperatorStateParts::new(&self.operator, name, subtask, port, environment));
        }
        asked.states.push((name, Box::new(state.clone())));
        Ok(state)
    }
}

fn refused(cx: &SinkContext, name: &str, why: &str) -> BoxError {
    format!("the state `{name}` of subtask {} of `{}` {why}", cx.subtask, cx.operator).into()
}
