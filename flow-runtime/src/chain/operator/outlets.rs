//! What leaves a chain: records, and after them how far event time has come.

use std::rc::Rc;

use super::{Builder, subtask::Subtask};
use crate::{
    chain::{
        Parcel,
        edge::{Credits, Drain},
        times::Times,
    },
    error::Error,
    watermark::{Mark, Signal},
};

/// An output, with what the engine needs to send on it.
pub(super) struct WayOut {
    pub(super) drain: Rc<dyn Drain>,
    pub(super) builder: Builder<Parcel>,
    pub(super) credits: Credits,
    pub(super) receivers: usize,
    /// If the output carries event time.
    pub(super) timed: Option<Timed>,
    /// Whether all goes to the subtask of the same index.
    pub(super) forward: bool,
}

/// The event time of an output.
pub(super) struct Timed {
    /// The `.watermarks(..)` it goes by; `None` for what arrives.
    pub(super) origin: Option<usize>,
    /// What the receivers know.
    pub(super) told: Mark,
}
impl Subtask {
    /// Lets windows fire, and sends what the loop has put into the outputs, and then how far event time has come.
    pub(super) fn send(&mut self) -> Result<(), Error> {
        loop {
            self.send_once()?;
            // Behind a watermark that an operator has let through there may be answers.
            if !self.times.as_ref().is_some_and(Times::has_more) {
                return Ok(());
            }
        }
    }

    fn send_once(&mut self) -> Result<(), Error> {
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
}

/// Tells all receivers how far the event time of this subtask has come.
fn tell(parcels: &mut Vec<Parcel>, signal: Signal, sender: usize, forward: bool, receivers: usize) {
    let targets = if forward { sender..sender + 1 } else { 0..receivers };
    parcels.extend(targets.map(|target| Parcel::signal(target, sender, signal)));
}
