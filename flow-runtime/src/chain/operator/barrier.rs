//! The end of an epoch in a chain, and the parts of its checkpoint.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
};

use serde::{Deserialize, Serialize};
use timely::dataflow::operators::Capability;

use super::{Builder, subtask::Subtask};
use crate::{
    chain::state::{OperatorWrite, StateWrite},
    checkpoint::{CheckpointId, OperatorStatePart, SinkPart, SourcePart, StatePart, WatermarkPart},
    error::Error,
    failpoint::{Point, reach},
    sink::SinkParts,
    source::SourceDriver,
    worker::{AbortOnDrop, Control, Tries},
};

/// A part of a checkpoint, on its way to the manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    Source(SourcePart),
    State(StatePart),
    Operator(OperatorStatePart),
    Sink(SinkPart),
    Watermark(WatermarkPart),
}
/// The parts of checkpoints in the making.
pub(super) struct Parts {
    pub(super) out: Builder<Part>,
    pub(super) current: Option<Capability<u64>>,
    /// Checkpoints whose parts are being written. Holding the capability is what keeps a checkpoint incomplete, and
    /// all later ones.
    pub(super) open: BTreeMap<CheckpointId, (Capability<u64>, AbortOnDrop<()>)>,
    /// How many checkpoints had failed when those that have failed were last closed.
    pub(super) failures: u64,
    pub(super) written: mpsc::Sender<(CheckpointId, Vec<Part>)>,
    pub(super) writes: mpsc::Receiver<(CheckpointId, Vec<Part>)>,
}

impl Parts {
    /// Passes on what has been written, and gives up what belongs to checkpoints that have failed. Returns whether
    /// nothing is left.
    pub(super) fn collect(&mut self, control: &Control) -> bool {
        let failures = control.failures();
        if failures > self.failures {
            self.failures = failures;
            self.open.retain(|checkpoint, _| !control.is_failed(*checkpoint));
        }
        while let Ok((checkpoint, parts)) = self.writes.try_recv() {
            if let Some((capability, _)) = self.open.remove(&checkpoint) {
                self.out.activate().session(&capability).give_iterator(parts.into_iter());
            }
        }
        self.open.is_empty() && self.current.is_none()
    }
}
impl Subtask {
    /// The end of an epoch: begins the snapshot, has it written elsewhere, and goes on.
    pub(super) fn barrier(&mut self, source: Option<&dyn SourceDriver>, last: bool) -> Result<(), Error> {
        // Where time moves when it is told to, what it has made due belongs to what was before the barrier.
        if self.environment.clock.is_manual() && self.times.is_some() {
            self.send()?;
        }
        let checkpoint = self.epoch;
        let mut parts = Vec::new();
        if let Some(driver) = source {
            let uid = driver.uid().to_owned();
            parts.push(Part::Source(SourcePart {
                uid,
                subtask: self.work.subtask,
                splits: driver.positions()?,
            }));
        }
        if let Some(times) = &self.times {
            parts.extend(times.parts(&self.work, self.environment.aligned).into_iter().map(Part::Watermark));
        }
        let sinks: Vec<_> = self.sinks.iter().map(|sink| sink.barrier(checkpoint, Tries::of(last))).collect();
        // Given up before it came here, or unwanted: then the end of the epoch is for the sinks alone, and what has
        // changed in the state belongs to the next checkpoint.
        let failed = self.environment.control.is_failed(checkpoint);
        let writing = if failed {
            None
        } else {
            let tries = Tries::of(last);
            let states = self.states.iter().filter_map(|state| state.barrier(checkpoint, tries)).collect();
            let lists = self.lists.iter().filter_map(|list| list.barrier(checkpoint, tries)).collect();
            Some(self.write(checkpoint, parts, (states, lists), sinks, tries))
        };
        let next = checkpoint.next();
        if let Some(mut capability) = self.parts.current.take() {
            if !last {
                self.parts.current = Some(capability.delayed(&next.0));
            }
            capability.downgrade(&checkpoint.0);
            if let Some(writing) = writing {
                self.parts.open.insert(checkpoint, (capability, writing));
            }
        }
        if last {
            self.capabilities.clear();
        }
        for capability in &mut self.capabilities {
            capability.downgrade(&next.0);
        }
        self.epoch = next;
        Ok(())
    }

    /// Has the parts of a checkpoint written. What cannot be written makes the checkpoint fail; anything else ends the
    /// attempt.
    fn write(
        &self,
        checkpoint: CheckpointId,
        mut parts: Vec<Part>,
        (states, lists): (Vec<StateWrite>, Vec<OperatorWrite>),
        sinks: Vec<SinkParts>,
        tries: Tries,
    ) -> AbortOnDrop<()> {
        let (environment, alarm, written) =
            (Arc::clone(&self.environment), self.alarm.clone(), self.parts.written.clone());
        AbortOnDrop(self.environment.tokio.spawn(async move {
            let write = async {
                reach(Point::SnapshotTaken);
                for state in states {
                    parts.push(Part::State(state.await?));
                }
                for list in lists {
                    parts.extend(list.await?.map(Part::Operator));
                }
                for sink in sinks {
                    let barrier = sink.await;
                    for handle in barrier.transactions.iter() {
                        parts.push(Part::Sink(handle.write(&environment, tries).await?));
                    }
                    for state in barrier.states {
                        parts.extend(state.await?.map(Part::Operator));
                    }
                }
                Ok::<_, Error>(parts)
            };
            match write.await {
                Ok(parts) => {
                    // The operator is gone only when the attempt ends.
                    let _ = written.send((checkpoint, parts));
                    alarm.ring();
                }
                Err(Error::Checkpoint(error)) if error.restartable() => {
                    environment.control.checkpoint_failed(checkpoint, error.to_string());
                }
                Err(error) => environment.control.fail(error),
            }
        }))
    }
}
