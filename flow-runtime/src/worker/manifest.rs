//! The operator that completes checkpoints: it collects their parts on worker 0 and has the manifest written.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
};

use timely::{
    container::CapacityContainerBuilder,
    dataflow::{
        Scope, StreamVec,
        channels::pact::Exchange,
        operators::{
            Capability, Concatenate,
            generic::{OutputBuilder, builder_rc::OperatorBuilder},
        },
    },
};

use super::{Alarm, Ending, Tries};
use crate::{
    chain::{Environment, Part},
    checkpoint::{CheckpointId, Manifest, OperatorEntry},
    failpoint::{Point, reach},
};

/// Builds the operator. Its output carries nothing; its frontier passes a checkpoint when that is complete, or, if it
/// has failed, when a later one is, which carries all that was pre-committed before it.
pub(super) fn build<'s>(
    scope: Scope<'s, u64>,
    parts: Vec<StreamVec<'s, u64, Part>>,
    environment: Arc<Environment>,
    operators: Vec<OperatorEntry>,
    retain: usize,
) -> StreamVec<'s, u64, ()> {
    let parts = scope.concatenate(parts);
    let mut builder = OperatorBuilder::new("manifest".to_owned(), scope);
    let alarm = Alarm::new(scope.worker().sync_activator_for(builder.operator_info().address.to_vec()));
    let mut input = builder.new_input(parts, Exchange::new(|_: &Part| 0));
    let (port, completions) = builder.new_output::<Vec<()>>();
    // Nothing is sent; the port has to live as long as the operator.
    let port = OutputBuilder::<u64, CapacityContainerBuilder<Vec<()>>>::from(port);
    let here = scope.index() == 0;
    let mut epoch = environment.first_epoch();
    builder.build(move |mut capabilities| {
        let mut current = capabilities.pop().filter(|_| here);
        if let Some(capability) = &mut current {
            capability.downgrade(&epoch.0);
        }
        let mut collected: BTreeMap<u64, Vec<Part>> = BTreeMap::new();
        // Those that are not covered by a complete one yet.
        let mut open: BTreeMap<CheckpointId, Capability<u64>> = BTreeMap::new();
        let (written, writes) = mpsc::channel::<CheckpointId>();
        // One manifest is written after the other, so that a crash never leaves a later one without an earlier one.
        let (orders, mut inbox) = tokio::sync::mpsc::unbounded_channel::<(Manifest, Tries)>();
        if here {
            let (environment, alarm) = (Arc::clone(&environment), alarm);
            environment.tokio.clone().spawn(async move {
                while let Some((manifest, tries)) = inbox.recv().await {
                    let id = manifest.id;
                    // While it waited for the one before it.
                    if environment.control.is_failed(id) {
                        continue;
                    }
                    match tries.run(|| environment.store.put_manifest(&manifest)).await {
                        Ok(()) if environment.control.completed(id) => {}
                        // It took too long. That it is there now does no harm: it is whole, and a later one replaces
                        // it before anything else comes of it.
                        Ok(()) => continue,
                        Err(error) if error.restartable() => {
                            environment.control.checkpoint_failed(id, error.to_string());
                            continue;
                        }
                        Err(error) => return environment.control.fail(error.into()),
                    }
                    reach(Point::ManifestWritten);
                    tracing::debug!(checkpoint = %id, "complete");
                    let _ = written.send(id);
                    alarm.ring();
                    reach(Point::BeforeRetention);
                    if let Err(error) = environment.store.retain(retain).await {
                        tracing::warn!("could not delete old checkpoints: {error}");
                    }
                }
            });
        }
        move |frontiers| {
            let _ = &port;
            input.for_each(|time, parts| {
                collected.entry(*time.least().unwrap_or(&0)).or_default().append(parts);
            });
            let frontier = frontiers[0].frontier().first().copied().unwrap_or(u64::MAX);
            while current.is_some() && frontier > epoch.0 {
                // Without a frontier, the last epoch is the last.
                let last = environment.control.last().filter(|_| frontier == u64::MAX);
                if frontier == u64::MAX && last.is_none() {
                    return;
                }
                let ends = last.is_some_and(|last| last.checkpoint <= epoch);
                let mut manifest =
                    Manifest::new(environment.job.clone(), epoch, environment.max_parallelism as usize);
                manifest.finished = ends && last.is_some_and(|last| last.ending == Ending::Finished);
                manifest.operators = operators.clone();
                for part in collected.remove(&epoch.0).unwrap_or_default() {
                    match part {
                        Part::Source(part) => manifest.sources.push(part),
                        Part::State(part) => manifest.states.push(part),
                        Part::Operator(part) => manifest.operator_states.push(part),
                        Part::Sink(part) => manifest.sinks.push(part),
                        Part::Watermark(part) => manifest.watermarks.push(part),
                    }
                }
                if let Some(capability) = current.take() {
                    if !ends {
                        current = Some(capability.delayed(&epoch.next().0));
                    }
                    open.insert(epoch, capability);
                }
                // A checkpoint that has failed may lack some of these parts.
                if !environment.control.is_failed(epoch) {
                    let _ = orders.send((manifest, Tries::of(ends)));
                }
                epoch = epoch.next();
            }
            while let Ok(id) = writes.try_recv() {
                open.retain(|covered, _| *covered > id);
            }
        }
    });
    completions
}
