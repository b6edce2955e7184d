//! Chains as Timely operators.
//!
//! The engine's time is the number of the epoch, and the end of epoch `e` is when an operator's input frontier passes
//! `e`. Every operator holds capabilities at its current epoch, so that its output stays in step with its input, and
//! one more on its output of checkpoint parts until the parts of that epoch are written.

mod arrivals;
mod barrier;
mod outlets;
mod subtask;

use std::{
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, mpsc},
};

use timely::{
    container::CapacityContainerBuilder,
    dataflow::{
        Scope, StreamVec,
        channels::pact::{Exchange, Pipeline},
        operators::generic::{OutputBuilder, builder_rc::OperatorBuilder},
    },
};

use arrivals::{Queue, Receive, Returns};
pub(crate) use barrier::Part;
use barrier::Parts;
use outlets::{Timed, WayOut};
use subtask::{Operator, Subtask};

use super::{
    Environment, Parcel, Partition, Work,
    times::Times,
    wiring::{ChainParts, EdgeParts, Head, Wiring},
};
use crate::{sink::SinkPort, watermark::Mark, worker::Alarm};

type Builder<D> = OutputBuilder<u64, CapacityContainerBuilder<Vec<D>>>;

/// What [`build`] leaves to be connected.
pub(crate) struct Built<'s> {
    /// The checkpoint parts of each chain.
    pub(crate) parts: Vec<StreamVec<'s, u64, Part>>,
    /// The sinks that have a subtask on this worker.
    pub(crate) sinks: Vec<Rc<dyn SinkPort>>,
}

/// Builds the operators of all chains, and returns the streams of their checkpoint parts.
pub(crate) fn build<'s>(scope: Scope<'s, u64>, wiring: Wiring, settled: &Alarm) -> Built<'s> {
    let mut streams: Vec<Option<StreamVec<'s, u64, Parcel>>> = wiring.edges.iter().map(|_| None).collect();
    let uids: Rc<[Rc<str>]> = wiring.operators.iter().map(|operator| Rc::clone(&operator.uid)).collect();
    let (mut parts, mut sinks) = (Vec::new(), Vec::new());
    for chain in wiring.chains {
        sinks.extend(chain.sinks.iter().cloned());
        let place = Place {
            environment: Arc::clone(&wiring.environment),
            edges: &wiring.edges,
            uids: Rc::clone(&uids),
            worker: wiring.worker,
            settled: settled.clone(),
        };
        parts.push(build_chain(scope, chain, &place, &mut streams));
    }
    Built { parts, sinks }
}

/// What every chain needs to know of its surroundings.
struct Place<'w> {
    environment: Arc<Environment>,
    edges: &'w [EdgeParts],
    uids: Rc<[Rc<str>]>,
    worker: usize,
    settled: Alarm,
}

fn build_chain<'s>(
    scope: Scope<'s, u64>,
    chain: ChainParts,
    place: &Place<'_>,
    streams: &mut [Option<StreamVec<'s, u64, Parcel>>],
) -> StreamVec<'s, u64, Part> {
    let ChainParts { parallelism, name, head, finish, outputs, states, lists, sinks, generators, firings } =
        chain;
    let mut builder = OperatorBuilder::new(name, scope);
    let address = builder.operator_info().address;
    let alarm = Alarm::new(scope.worker().sync_activator_for(address.to_vec()));
    let activator = scope.activator_for(Rc::clone(&address));

    let mut inputs: Vec<Receive> = Vec::new();
    // The senders of event time, over all inputs.
    let mut clocks = 0;
    if let Head::Edges(entrances) = &head {
        let ids =
            entrances.iter().enumerate().flat_map(|(i, input)| input.ids.iter().map(move |id| (i, *id)));
        for (entrance, id) in ids {
            let stream =
                streams[id].take().expect("an edge is built before the chain that reads it, and read once");
            let edge = &place.edges[id];
            let first_clock = clocks;
            clocks += match (edge.timed, edge.partition) {
                (false, _) => 0,
                (true, Partition::Forward) => 1,
                (true, Partition::Exchange) => edge.senders,
            };
            let forward = edge.partition == Partition::Forward;
            let returns = Returns {
                entrance,
                credits: Arc::clone(&edge.credits),
                receivers: edge.receivers,
                first_clock,
                forward,
            };
            match edge.partition {
                Partition::Forward => {
                    let mut input = builder.new_input(stream, Pipeline);
                    inputs.push(Box::new(move |queue| {
                        input.for_each(|time, parcels| {
                            queue.arrive(*time.least().unwrap_or(&0), parcels, &returns)
                        });
                    }));
                }
                Partition::Exchange => {
                    let mut input =
                        builder.new_input(stream, Exchange::new(|parcel: &Parcel| parcel.target as u64));
                    inputs.push(Box::new(move |queue| {
                        input.for_each(|time, parcels| {
                            queue.arrive(*time.least().unwrap_or(&0), parcels, &returns)
                        });
                    }));
                }
            }
        }
    }
    let mut ways_out = Vec::new();
    for output in outputs {
        let (port, stream) = builder.new_output::<Vec<Parcel>>();
        streams[output.edge] = Some(stream);
        let edge = &place.edges[output.edge];
        if place.worker < parallelism {
            edge.credits[place.worker].wake_with(scope.worker().sync_activator_for(address.to_vec()));
        }
        ways_out.push(WayOut {
            drain: output.drain,
            builder: Builder::from(port),
            credits: Arc::clone(&edge.credits),
            receivers: edge.receivers,
            timed: output.origin.map(|origin| Timed { origin, told: Mark::default() }),
            forward: edge.partition == Partition::Forward,
        });
    }
    let times = Times::new(generators, firings, clocks, &place.environment.clock);
    let (port, parts_stream) = builder.new_output::<Vec<Part>>();
    let parts_out = Builder::from(port);

    let active = place.worker < parallelism;
    let environment = Arc::clone(&place.environment);
    let first = environment.first_epoch();
    let settled = place.settled.clone();
    let work = Work { uids: Rc::clone(&place.uids), subtask: place.worker };
    builder.build(move |mut capabilities| {
        let mut subtask = None;
        let mut head = head;
        if active {
            for capability in &mut capabilities {
                capability.downgrade(&first.0);
            }
            let parts_capability = capabilities.pop();
            for sink in &sinks {
                sink.start(alarm.clone(), settled.clone());
            }
            if let Some(times) = &times {
                times.start(&alarm);
                if times.holds_back() {
                    // What was under way at the checkpoint is asked for, whether anything arrives or not.
                    activator.activate();
                }
            }
            // A source has epochs to end, and all of them have parts that may have failed.
            environment.control.register(alarm.clone());
            if let Head::Source { driver, .. } = &mut head {
                driver.start(alarm.clone());
                // Timely runs an operator first when something arrives, and to a source nothing does.
                activator.activate();
            }
            let (written, writes) = mpsc::channel();
            subtask = Some(Subtask {
                held_up: false,
                environment,
                work,
                epoch: first,
                capabilities,
                ways_out,
                scratch: Vec::new(),
                parts: Parts {
                    out: parts_out,
                    current: parts_capability,
                    open: BTreeMap::new(),
                    failures: 0,
                    written,
                    writes,
                },
                states,
                lists,
                sinks,
                finish,
                times,
                wakes: None,
                alarm,
                activator,
            });
        }
        let mut operator = match head {
            Head::Source { operator, driver } => Operator::Source { operator, driver, finished: false },
            Head::Edges(entrances) => Operator::Inner {
                loops: entrances.into_iter().map(|entrance| entrance.run).collect(),
                inputs,
                queue: Queue::default(),
            },
        };
        move |frontiers| {
            if let Some(running) = &mut subtask {
                if running.environment.control.has_failed() {
                    return;
                }
                match running.schedule(&mut operator, frontiers) {
                    Ok(true) => subtask = None,
                    Ok(false) => {}
                    Err(error) => running.environment.control.fail(error),
                }
            }
        }
    });
    parts_stream
}
