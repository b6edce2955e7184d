//! A chain on a worker: its turns.

use std::{
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use timely::{dataflow::operators::Capability, progress::frontier::MutableAntichain, scheduling::Activator};

use super::{
    arrivals::{Queue, Receive},
    barrier::Parts,
    outlets::WayOut,
};
use crate::{
    chain::{
        Environment, Parcel, Work,
        state::{OperatorStateParts, StateParts},
        times::Times,
        wiring::{FinishLoop, ParcelLoop},
    },
    checkpoint::CheckpointId,
    error::Error,
    sink::SinkPort,
    source::{SourceDriver, Step},
    state::Left,
    watermark::LOOK_AGAIN,
    worker::{Alarm, Ending},
};

/// How long a source works before other operators get their turn.
const TURN: Duration = Duration::from_millis(1);
/// How long state is collected for a checkpoint before records get their turn.
const SLICE: Duration = Duration::from_micros(500);
/// How long it is left to be encoded before more is collected.
const READING: Duration = Duration::from_millis(1);
/// What sets the two kinds of chains apart.
pub(super) enum Operator {
    Source {
        operator: usize,
        driver: Box<dyn SourceDriver>,
        finished: bool,
    },
    /// One loop per input.
    Inner {
        loops: Vec<ParcelLoop>,
        inputs: Vec<Receive>,
        queue: Queue,
    },
}
/// A chain on a worker that takes part in it.
pub(super) struct Subtask {
    pub(super) environment: Arc<Environment>,
    pub(super) work: Work,
    pub(super) epoch: CheckpointId,
    /// One per output, at the current epoch.
    pub(super) capabilities: Vec<Capability<u64>>,
    pub(super) ways_out: Vec<WayOut>,
    pub(super) scratch: Vec<Parcel>,
    pub(super) parts: Parts,
    pub(super) states: Vec<StateParts>,
    pub(super) lists: Vec<OperatorStateParts>,
    pub(super) sinks: Vec<Rc<dyn SinkPort>>,
    pub(super) finish: Vec<FinishLoop>,
    pub(super) times: Option<Times>,
    /// Whether it could not go on when it last wanted to.
    pub(super) held_up: bool,
    /// When it has asked to be woken because of time.
    pub(super) wakes: Option<Instant>,
    pub(super) alarm: Alarm,
    pub(super) activator: Activator,
}

impl Subtask {
    /// One turn. Returns whether the chain is done.
    pub(super) fn schedule(
        &mut self,
        operator: &mut Operator,
        frontiers: &[MutableAntichain<u64>],
    ) -> Result<bool, Error> {
        // Also when there is nothing left to do but to hand over buffers, or the last barrier would stay behind them.
        for sink in &self.sinks {
            sink.ready();
        }
        if !self.capabilities_dropped() {
            self.answer()?;
            match operator {
                Operator::Source { operator, driver, finished } => {
                    self.read(*operator, &mut **driver, finished)?
                }
                Operator::Inner { loops, inputs, queue } => {
                    for receive in inputs {
                        receive(queue);
                    }
                    self.work_off(loops, queue, frontiers)?;
                }
            }
        }
        match self.collect() {
            Left::Nothing => {}
            Left::Some => self.activator.activate(),
            Left::Unread => self.wake_after(READING),
        }
        Ok(self.parts.collect(&self.environment.control))
    }

    /// Collects some of the state for the last barrier.
    fn collect(&self) -> Left {
        let until = Instant::now() + SLICE;
        let mut left = Left::Nothing;
        for state in &self.states {
            match state.collect(until) {
                Left::Nothing => {}
                Left::Some => return Left::Some,
                Left::Unread => left = Left::Unread,
            }
        }
        left
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
                if self.must_wait(last.ending) {
                    return Ok(());
                }
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
                times.tick();
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
                step @ (Step::Waiting | Step::Ahead) => {
                    self.pass_time()?;
                    self.flush_sinks();
                    if step == Step::Ahead {
                        self.wake_after(LOOK_AGAIN);
                    }
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
        loops: &mut [ParcelLoop],
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
                        let run = &mut loops[returns.entrance];
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
                    }
                    if self.must_wait(last.ending) {
                        return Ok(());
                    }
                    if last.ending == Ending::Finished {
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
        // A clock that moves when it is told to wakes the chain itself.
        if self.environment.clock.is_manual() {
            return Ok(());
        }
        if let Some(pause) = self.times.as_ref().and_then(Times::look_again) {
            self.wake_after(pause);
        }
        Ok(())
    }

    /// Asks for a turn when so much time has passed.
    fn wake_after(&mut self, pause: Duration) {
        let now = Instant::now();
        let at = now + pause;
        // Once is enough, however often the chain has nothing to read meanwhile.
        if self.wakes.is_none_or(|wakes| wakes <= now || wakes > at) {
            self.wakes = Some(at);
            self.activator.activate_after(pause);
        }
    }

    /// Takes up what was answered meanwhile, unless what follows asks to wait; then it wakes the chain, too.
    fn answer(&mut self) -> Result<(), Error> {
        if self.times.as_ref().is_some_and(Times::holds_back) && self.ways_are_open() {
            self.send()?;
        }
        Ok(())
    }

    /// Whether the end has to wait for answers, which wake the chain. Where the job can go on from a checkpoint, a stop
    /// does not wait: the checkpoint holds what is under way.
    fn must_wait(&self, ending: Ending) -> bool {
        let wanted = ending == Ending::Finished || !self.environment.goes_back;
        wanted && self.times.as_ref().is_some_and(|times| !times.is_empty())
    }

    /// Whether nobody asks to wait: no sink, no following chain, and no operator that has enough under way.
    fn may_go_on(&mut self) -> bool {
        let mut go_on = self.ways_are_open();
        if let Some(times) = &mut self.times {
            go_on &= !times.is_full();
            times.may_read(go_on);
        }
        if self.held_up == go_on {
            self.held_up = !go_on;
            self.environment.control.held_up(if go_on { -1 } else { 1 });
        }
        go_on
    }

    /// Whether neither a sink nor a following chain asks to wait.
    fn ways_are_open(&self) -> bool {
        // All are asked, for each has to note that it is waited for.
        let mut go_on = true;
        for sink in &self.sinks {
            go_on &= sink.ready();
        }
        for way in &self.ways_out {
            go_on &= !way.credits[self.work.subtask].exhausted(way.receivers);
        }
        go_on
    }

    fn flush_sinks(&self) {
        for sink in &self.sinks {
            sink.flush();
        }
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
}
