//! Which subtask reads which split.

use std::collections::HashSet;

use tokio::sync::{Mutex, mpsc};

use super::{Source, Split};
use crate::{checkpoint::SplitState, error::BoxError};

/// Deals out the splits of one source among its subtasks: shared by them, so that discovery happens once.
pub(crate) struct Assigner<Sp> {
    state: Mutex<Option<Dealt<Sp>>>,
    parallelism: usize,
}

struct Dealt<Sp> {
    known: HashSet<String>,
    next: usize,
    initial: Vec<Vec<Sp>>,
    later: Vec<mpsc::UnboundedSender<Vec<Sp>>>,
    receivers: Vec<Option<mpsc::UnboundedReceiver<Vec<Sp>>>>,
}

/// What one subtask gets: its splits, and a channel by which it is given more.
pub(crate) struct Hand<Sp> {
    pub(crate) splits: Vec<Sp>,
    pub(crate) later: mpsc::UnboundedReceiver<Vec<Sp>>,
}

/// The splits of a checkpoint, in the order in which they are dealt out.
fn decode<Sp: Split>(restored: &[SplitState]) -> Result<Vec<Sp>, BoxError> {
    let mut splits = Vec::new();
    for split in restored {
        splits.push(rmp_serde::from_slice::<Sp>(&split.data).map_err(|e| {
            format!("the checkpoint's position of `{}` is of another kind of source: {e}", split.id)
        })?);
    }
    splits.sort_by_key(Split::id);
    Ok(splits)
}

/// Which splits of a checkpoint a subtask will be [handed](Assigner::hand), before anybody has looked for others: a
/// checkpoint may be due while the source is still out of reach, and must not forget them.
pub(crate) fn share<Sp: Split>(
    restored: &[SplitState],
    subtask: usize,
    parallelism: usize,
) -> Result<Vec<Sp>, BoxError> {
    Ok(decode(restored)?.into_iter().skip(subtask).step_by(parallelism).collect())
}

impl<Sp: Split> Assigner<Sp> {
    pub(crate) fn new(parallelism: usize) -> Self {
        Assigner { state: Mutex::new(None), parallelism }
    }

    /// The splits of `subtask`: those of the checkpoint at their positions there, then what is new.
    pub(crate) async fn hand<S: Source<Split = Sp>>(
        &self,
        source: &S,
        restored: Option<&[SplitState]>,
        subtask: usize,
    ) -> Result<Hand<Sp>, BoxError> {
        let mut state = self.state.lock().await;
        let dealt = match &mut *state {
            Some(dealt) => dealt,
            none => {
                let mut splits = decode::<Sp>(restored.unwrap_or_default())?;
                let mut known: HashSet<String> = splits.iter().map(Split::id).collect();
                for split in source.discover(restored.is_some()).await? {
                    if known.insert(split.id()) {
                        splits.push(split);
                    }
                }
                let mut initial: Vec<Vec<Sp>> = (0..self.parallelism).map(|_| Vec::new()).collect();
                let next = splits.len();
                for (i, split) in splits.into_iter().enumerate() {
                    initial[i % self.parallelism].push(split);
                }
                let (later, receivers): (Vec<_>, Vec<_>) =
                    (0..self.parallelism).map(|_| mpsc::unbounded_channel()).unzip();
                let receivers = receivers.into_iter().map(Some).collect();
                none.insert(Dealt { known, next, initial, later, receivers })
            }
        };
        let splits = std::mem::take(&mut dealt.initial[subtask]);
        let later = dealt.receivers[subtask].take().ok_or("a subtask of a source was opened twice")?;
        Ok(Hand { splits, later })
    }

    /// Looks for new splits and deals them out.
    pub(crate) async fn rediscover<S: Source<Split = Sp>>(&self, source: &S) -> Result<(), BoxError> {
        let found = source.discover(true).await?;
        if let Some(dealt) = &mut *self.state.lock().await {
            for split in found {
                if dealt.known.insert(split.id()) {
                    tracing::info!(split = split.id(), "found a new split");
                    // A subtask that is gone takes the whole attempt with it.
                    let _ = dealt.later[dealt.next % self.parallelism].send(vec![split]);
                    dealt.next += 1;
                }
            }
        }
        Ok(())
    }
}
