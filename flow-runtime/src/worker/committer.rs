//! The operator that tells sinks which checkpoints are complete, and stays until they have committed.

use std::{rc::Rc, sync::Arc};

use timely::dataflow::{
    StreamVec,
    channels::pact::Pipeline,
    operators::generic::{OperatorInfo, builder_rc::OperatorBuilder},
};

use super::Alarm;
use crate::{chain::Environment, checkpoint::CheckpointId, sink::SinkPort};

/// The operator before the sinks are known: sinks are started with its alarm.
pub(super) struct Committer<'s> {
    builder: OperatorBuilder<'s, u64>,
    info: OperatorInfo,
}

impl<'s> Committer<'s> {
    pub(super) fn reserve(scope: timely::dataflow::Scope<'s, u64>) -> Self {
        let builder = OperatorBuilder::new("committer".to_owned(), scope);
        let info = builder.operator_info();
        Committer { builder, info }
    }

    pub(super) fn alarm(&self, scope: timely::dataflow::Scope<'s, u64>) -> Alarm {
        Alarm::new(scope.worker().sync_activator_for(self.info.address.to_vec()))
    }

    pub(super) fn build(
        mut self,
        completions: StreamVec<'s, u64, ()>,
        environment: Arc<Environment>,
        worker: usize,
        sinks: Vec<Rc<dyn SinkPort>>,
    ) {
        let mut input = self.builder.new_input(completions, Pipeline);
        let mut known = CheckpointId(environment.first_epoch().0 - 1);
        let mut told = known;
        self.builder.build_reschedule(move |_| {
            move |frontiers| {
                input.for_each(|_, nothing| nothing.clear());
                // A frontier may move because an attempt comes apart, and that completes nothing.
                if environment.control.has_failed() {
                    return false;
                }
                let complete = match frontiers[0].frontier().first() {
                    Some(&open) => CheckpointId(open.saturating_sub(1)),
                    None => environment.control.last().map_or(known, |last| last.checkpoint),
                };
                if complete > known {
                    known = complete;
                    for sink in &sinks {
                        sink.completed(complete);
                    }
                }
                // Incomplete while a sink has something to commit: the job ends when nothing is in doubt.
                let settled = sinks.iter().all(|sink| sink.settled(known));
                if settled && known > told {
                    told = known;
                    environment.control.settled(worker, known);
                }
                !settled
            }
        });
    }
}
