//! Chains as Timely operators.
//!
//! The engine's time is the number of the epoch, and the end of epoch `e` is when an operator's input frontier passes
//! `e`. Every operator holds capabilities at its current epoch, so that its output stays in step with its input, and
//! one more on its output of checkpoint parts until the parts of that epoch are written.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use timely::{
    container::CapacityContainerBuilder,
    dataflow::{
        Scope, StreamVec,
        channels::pact::{Exchange, Pipeline},
        operators::{
            Capability,
            generic::{OutputBuilder, builder_rc::OperatorBuilder},
        },
    },
    progress::frontier::MutableAntichain,
    scheduling::Activator,
};

use super::{
    Environment, Parcel, Partition, Work,
    edge::{Credits, Drain},
    state::{StateParts, StateWrite},
    times::Times,
    wiring::{ChainParts, EdgeParts, FinishLoop, Head, ParcelLoop, Wiring},
};
use crate::{
    checkpoint::{CheckpointId, SinkPart, SourcePart, StatePart, WatermarkPart},
    error::Error,
    failpoint::{Point, reach},
    sink::{SinkParts, SinkPort},
    source::{SourceDriver, Step},
    watermark::{Mark, Signal},
    worker::{AbortOnDrop, Alarm, Control, Ending, Tries},
};

/// A part of a checkpoint, on its way to the manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    Source(SourcePart),
    State(StatePart),
    Sink(SinkPart),
    Watermark(WatermarkPart),
}

type Builder<D> = OutputBuilder<u64, CapacityContainerBuilder<Vec<D>>>;

/// How long a source works before other operators get their turn.
const TURN: Duration = Duration::from_millis(1);
/// How long state is collected for a checkpoint before records get their turn.
const SLICE: Duration = Duration::from_micros(500);

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
    let ChainParts { parallelism, name, head, finish, outputs, states, sinks, generators, firings } = chain;
    let mut builder = OperatorBuilder::new(name, scope);
    let address = builder.operator_info().address;
    let alarm = Alarm::new(scope.worker().sync_activator_for(address.to_vec()));
    let activator = scope.activator_for(Rc::clone(&address));

    let mut inputs: Vec<Receive> = Vec::new();
    // The senders of event time, over all inputs.
    let mut clocks = 0;
    if let Head::Edges { ids, .. } = &head {
        for &id in ids {
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
    let times = Times::new(generators, firings, clocks);
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
            // A source has epochs to end, and all of them have parts that may have failed.
            environment.control.register(alarm.clone());
            if let Head::Source { driver, .. } = &mut head {
                driver.start(alarm.clone());
                // Timely runs an operator first when something arrives, and to a source nothing does.
                activator.activate();
            }
            let (written, writes) = mpsc::channel();
            subtask = Some(Subtask {
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
            Head::Edges { run, .. } => Operator::Inner { run, inputs, queue: Queue::default() },
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

/// What sets the two kinds of chains apart.
enum Operator {
    Source { operator: usize, driver: Box<dyn SourceDriver>, finished: bool },
    Inner { run: ParcelLoop, inputs: Vec<Receive>, queue: Queue },
}

type Receive = Box<dyn FnMut(&mut Queue)>;

/// Where the credit of a parcel goes when it is used up.
#[derive(Clone)]
struct Returns {
    credits: Credits,
    receivers: usize,
    /// Where the senders of this edge begin among all that say how far their event time has come.
    first_clock: usize,
    /// Whether the subtask of the same index is the only one.
    forward: bool,
}

/// Parcels that have arrived, by epoch: those of later epochs wait here, which is the alignment of a checkpoint.
#[derive(Default)]
struct Queue {
    epochs: BTreeMap<u64, VecDeque<(Parcel, Returns)>>,
}

impl Queue {
    fn arrive(&mut self, epoch: u64, parcels: &mut Vec<Parcel>, returns: &Returns) {
        let queue = self.epochs.entry(epoch).or_default();
        queue.extend(parcels.drain(..).map(|parcel| (parcel, returns.clone())));
    }

    /// The next parcel of the epoch; of any epoch when checkpoints are not aligned.
    fn next(&mut self, epoch: CheckpointId, aligned: bool) -> Option<(Parcel, Returns)> {
        let mut entry = self.epochs.first_entry()?;
        if aligned && *entry.key() > epoch.0 {
            return None;
        }
        let next = entry.get_mut().pop_front();
        if entry.get().is_empty() {
            entry.remove();
        }
        next
    }

    fn has(&self, epoch: CheckpointId) -> bool {
        self.epochs.first_key_value().is_some_and(|(first, _)| *first <= epoch.0)
    }
}

/// An output, with what the engine needs to send on it.
struct WayOut {
    drain: Rc<dyn Drain>,
    builder: Builder<Parcel>,
    credits: Credits,
    receivers: usize,
    /// If the output carries event time.
    timed: Option<Timed>,
    /// Whether all goes to the subtask of the same index.
    forward: bool,
}

/// The event time of an output.
struct Timed {
    /// The `.watermarks(..)` it goes by; `None` for what arrives.
    origin: Option<usize>,
    /// What the receivers know.
    told: Mark,
}

/// The parts of checkpoints in the making.
struct Parts {
    out: Builder<Part>,
    current: Option<Capability<u64>>,
    /// Checkpoints whose parts are being written. Holding the capability is what keeps a checkpoint incomplete, and
    /// all later ones.
    open: BTreeMap<CheckpointId, (Capability<u64>, AbortOnDrop<()>)>,
    /// How many checkpoints had failed when those that have failed were last closed.
    failures: u64,
    written: mpsc::Sender<(CheckpointId, Vec<Part>)>,
    writes: mpsc::Receiver<(CheckpointId, Vec<Part>)>,
}

impl Parts {
    /// Passes on what has been written, and gives up what belongs to checkpoints that have failed. Returns whether
    /// nothing is left.
    fn collect(&mut self, control: &Control) -> bool {
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

/// A chain on a worker that takes part in it.
struct Subtask {
    environment: Arc<Environment>,
    work: Work,
    epoch: CheckpointId,
    /// One per output, at the current epoch.
    capabilities: Vec<Capability<u64>>,
    ways_out: Vec<WayOut>,
    scratch: Vec<Parcel>,
    parts: Parts,
    states: Vec<StateParts>,
    sinks: Vec<Rc<dyn SinkPort>>,
    finish: Vec<FinishLoop>,
    times: Option<Times>,
    /// When it has asked to be woken because of time.
    wakes: Option<Instant>,
    alarm: Alarm,
    activator: Activator,
}

impl Subtask {
    /// One turn. Returns whether the chain is done.
    fn schedule(
        &mut self,
        operator: &mut Operator,
        frontiers: &[MutableAntichain<u64>],
    ) -> Result<bool, Error> {
        // Also when there is nothing left to do but to hand over buffers, or the last barrier would stay behind them.
        for sink in &self.sinks {
            sink.ready();
        }
        if !self.capabilities_dropped() {
            match operator {
                Operator::Source { operator, driver, finished } => {
                    self.read(*operator, &mut **driver, finished)?
                }
                Operator::Inner { run, inputs, queue } => {
                    for receive in inputs {
                        receive(queue);
                    }
                    self.work_off(run, queue, frontiers)?;
                }
            }
        }
        if !self.collect() {
            self.activator.activate();
        }
        Ok(self.parts.collect(&self.environment.control))
    }

    /// Collects some of the state for the last barrier. Returns whether nothing is left.
    fn collect(&self) -> bool {
        let until = Instant::now() + SLICE;
        self.states.iter().all(|state| state.collect(until))
    }

    fn capabilities_dropped(&self) -> bool {
        self.parts.current.is_none()
    }

    /// A source chain's turn: ends epochs when asked to, and otherwise reads.
    fn read(
        &mut self,
        operator: usize,
        driver: &mut dyn SourceDriver,
        finished: &mut bool,
    ) -> Result<(), Error> {
        let began = Instant::now();
        if !driver.assigned()? {
            return Ok(());
        }
        loop {
            let last = self.environment.control.last();
            while self.environment.control.requested() >= self.epoch {
                self.barrier(Some(driver), false)?;
            }
            if let Some(last) = last.filter(|last| last.checkpoint == self.epoch) {
                if last.ending == Ending::Finished {
                    self.finish()?;
                }
                return self.barrier(Some(driver), true);
            }
            if *finished || self.environment.control.ending() {
                return Ok(());
            }
            if !self.may_go_on() {
                return Ok(());
            }
            if let Some(times) = &self.times {
                driver.clock(times.now());
            }
            match driver.step(&self.work)? {
                Step::Worked => self.send()?,
                Step::Finished => {
                    self.end_of_time();
                    self.send()?;
                    self.flush_sinks();
                    *finished = true;
                    self.environment.control.source_finished(operator, self.work.subtask);
                    continue;
                }
                Step::Waiting => {
                    self.pass_time()?;
                    self.flush_sinks();
                    return Ok(());
                }
            }
            if began.elapsed() >= TURN {
                self.activator.activate();
                return Ok(());
            }
        }
    }

    /// An inner chain's turn: works off what has arrived, and ends the epochs that the frontier has passed.
    fn work_off(
        &mut self,
        run: &mut ParcelLoop,
        queue: &mut Queue,
        frontiers: &[MutableAntichain<u64>],
    ) -> Result<(), Error> {
        let frontier = frontiers.iter().filter_map(|input| input.frontier().first().copied()).min();
        loop {
            while self.may_go_on() {
                let Some((parcel, returns)) = queue.next(self.epoch, self.environment.aligned) else { break };
                let sender = parcel.sender;
                match (parcel.as_signal(), &mut self.times) {
                    (Some(signal), Some(times)) => {
                        times.hear(returns.first_clock + if returns.forward { 0 } else { sender }, signal);
                    }
                    (_, times) => {
                        if let Some(times) = times {
                            times.begin();
                        }
                        self.work.run(|| run(parcel)).map_err(|error| {
                            let record = format!("record {} of a batch from subtask {sender}", error.record);
                            self.work.place(error, Some(record))
                        })?;
                    }
                }
                returns.credits[sender].returned(returns.receivers);
                self.send()?;
            }
            if queue.has(self.epoch) {
                // Whoever holds us up, the sink or the next chain, wakes us.
                return Ok(());
            }
            match frontier {
                Some(open) if open <= self.epoch.0 => {
                    self.pass_time()?;
                    self.flush_sinks();
                    return Ok(());
                }
                Some(_) => self.barrier(None, false)?,
                None => {
                    // All sources are done, so the last epoch is known.
                    let Some(last) = self.environment.control.last() else { return Ok(()) };
                    if self.epoch < last.checkpoint {
                        self.barrier(None, false)?;
                        continue;
                    }
                    if last.ending == Ending::Finished {
                        self.end_of_time();
                        // What windows emit comes before what aggregates give at the end.
                        self.send()?;
                        self.finish()?;
                    }
                    return self.barrier(None, true);
                }
            }
        }
    }

    /// All input is read, so that nothing more can come.
    fn end_of_time(&self) {
        if let Some(times) = &self.times {
            times.end();
        }
    }

    /// There is nothing to read now, which says something of event time, too.
    fn pass_time(&mut self) -> Result<(), Error> {
        if self.times.is_none() {
            return Ok(());
        }
        self.send()?;
        if let Some(pause) = self.times.as_ref().and_then(Times::look_again) {
            let now = Instant::now();
            let at = now + pause;
            // Once is enough, however often the chain has nothing to read meanwhile.
            if self.wakes.is_none_or(|wakes| wakes <= now || wakes > at) {
                self.wakes = Some(at);
                self.activator.activate_after(pause);
            }
        }
        Ok(())
    }

    /// Whether neither a sink nor a following chain asks to wait.
    fn may_go_on(&mut self) -> bool {
        // All are asked, for each has to note that it is waited for.
        let mut go_on = true;
        for sink in &self.sinks {
            go_on &= sink.ready();
        }
        for way in &self.ways_out {
            go_on &= !way.credits[self.work.subtask].exhausted(way.receivers);
        }
        if let Some(times) = &mut self.times {
            times.may_read(go_on);
        }
        go_on
    }

    fn flush_sinks(&self) {
        for sink in &self.sinks {
            sink.flush();
        }
    }

    /// Lets windows fire, and sends what the loop has put into the outputs, and then how far event time has come.
    fn send(&mut self) -> Result<(), Error> {
        if let Some(times) = &mut self.times {
            times.fire(&self.work)?;
        }
        for (way, capability) in self.ways_out.iter_mut().zip(&self.capabilities) {
            let after = match (&mut way.timed, &mut self.times) {
                (Some(timed), Some(times)) => {
                    let mark = times.mark(timed.origin);
                    let (before, after) = mark.signals(std::mem::replace(&mut timed.told, mark));
                    if let Some(signal) = before {
                        tell(&mut self.scratch, signal, self.work.subtask, way.forward, way.receivers);
                    }
                    after
                }
                _ => [None, None],
            };
            way.drain.drain(&mut self.scratch);
            for signal in after.into_iter().flatten() {
                tell(&mut self.scratch, signal, self.work.subtask, way.forward, way.receivers);
            }
            if !self.scratch.is_empty() {
                way.credits[self.work.subtask].taken(self.scratch.len());
                way.builder.activate().session(capability).give_iterator(self.scratch.drain(..));
            }
        }
        Ok(())
    }

    /// The end of the input: runs what follows the aggregates of a batch pipeline.
    fn finish(&mut self) -> Result<(), Error> {
        for run in &mut self.finish {
            self.work
                .run(run)
                .map_err(|error| self.work.place(error, Some("the end of the input".to_owned())))?;
        }
        self.send()
    }

    /// The end of an epoch: begins the snapshot, has it written elsewhere, and goes on.
    fn barrier(&mut self, source: Option<&dyn SourceDriver>, last: bool) -> Result<(), Error> {
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
        let sinks: Vec<_> = self.sinks.iter().map(|sink| sink.barrier(checkpoint)).collect();
        // Given up before it came here, or unwanted: then the end of the epoch is for the sinks alone, and what has
        // changed in the state belongs to the next checkpoint.
        let failed = self.environment.control.is_failed(checkpoint);
        let writing = if failed {
            None
        } else {
            let tries = Tries::of(last);
            let states = self.states.iter().filter_map(|state| state.barrier(checkpoint, tries)).collect();
            Some(self.write(checkpoint, parts, states, sinks, tries))
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
        states: Vec<StateWrite>,
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
                for sink in sinks {
                    let pending = sink.await;
                    for handle in pending.iter() {
                        parts.push(Part::Sink(handle.write(&environment, tries).await?));
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

/// Tells all receivers how far the event time of this subtask has come.
fn tell(parcels: &mut Vec<Parcel>, signal: Signal, sender: usize, forward: bool, receivers: usize) {
    let targets = if forward { sender..sender + 1 } else { 0..receivers };
    parcels.extend(targets.map(|target| Parcel::signal(target, sender, signal)));
}
