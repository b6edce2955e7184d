//! When to take a checkpoint, and how many may fail. Facts in, decision out: no I/O and no clock. Times are durations
//! since any fixed moment, such as the start of the job.

use std::{collections::BTreeMap, time::Duration};

use super::CheckpointId;

/// How often to take checkpoints, and what to bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// From one trigger to the next; `None` takes none but those that are asked for, and the final one.
    pub interval: Option<Duration>,
    /// At least this long from the end of one to the trigger of the next, so that the job also gets to work.
    pub min_pause: Duration,
    /// A checkpoint that takes as long has failed.
    pub timeout: Option<Duration>,
    /// How many may be in flight; at least 1.
    pub max_concurrent: usize,
    /// How many may fail one after the other. One more, and the job goes back to the last complete one.
    pub tolerable_failures: u32,
}

/// What to do now.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Begin this checkpoint, and then [ask again](Coordinator::on_timer).
    Trigger(CheckpointId),
    /// Ask again at this time, counted like `now`: the next one is due, or one in flight
    /// [overdue](Coordinator::overdue).
    WaitUntil(Duration),
    /// Ask again when something has happened.
    Wait,
    /// This checkpoint was one failure too many: end the attempt.
    GiveUp(CheckpointId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Running,
    /// The job wants to end: one more, then none.
    Ending,
    /// The last one has been triggered; it is the last, whatever becomes of it.
    Final(CheckpointId),
    /// None is wanted any more.
    Over,
}

/// Decides when to trigger which checkpoint, numbered without gaps, and when too many have failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    timing: Timing,
    phase: Phase,
    /// The last one that was triggered, or that was there before.
    last: CheckpointId,
    /// Those in flight, and since when.
    in_flight: BTreeMap<CheckpointId, Duration>,
    /// When the next periodic one is due.
    due: Option<Duration>,
    /// When the pause after the one that ended last is over.
    rested: Duration,
    /// Whether one was asked for that is not due by time.
    asked: bool,
    /// How many have failed since the last complete one.
    failures: u32,
}

impl Coordinator {
    /// The first checkpoint will be the one after `last`, an interval from `now`.
    #[must_use]
    pub fn new(timing: Timing, last: CheckpointId, now: Duration) -> Self {
        let due = timing.interval.map(|interval| now.saturating_add(interval));
        let (phase, in_flight) = (Phase::Running, BTreeMap::new());
        Coordinator { timing, phase, last, in_flight, due, rested: now, asked: false, failures: 0 }
    }

    /// The checkpoints in flight, the oldest first.
    pub fn in_flight(&self) -> impl Iterator<Item = CheckpointId> {
        self.in_flight.keys().copied()
    }

    /// The oldest checkpoint that has taken too long: say [`on_failed`](Self::on_failed).
    #[must_use]
    pub fn overdue(&self, now: Duration) -> Option<CheckpointId> {
        self.in_flight
            .iter()
            .find(|(_, since)| self.deadline(**since).is_some_and(|d| d <= now))
            .map(|(id, _)| *id)
    }

    /// How many checkpoints have failed since the last complete one.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether no checkpoint will follow this one.
    #[must_use]
    pub fn is_final(&self, id: CheckpointId) -> bool {
        self.phase == Phase::Final(id)
    }

    /// Asked at the time that [`Decision::WaitUntil`] named, or at any other.
    pub fn on_timer(&mut self, now: Duration) -> Decision {
        let room = self.in_flight.len() < self.timing.max_concurrent.max(1);
        let due = match self.phase {
            Phase::Ending if room => {
                let decision = self.trigger(now);
                self.phase = Phase::Final(self.last);
                return decision;
            }
            Phase::Running if room => {
                if self.asked || self.due.is_some_and(|due| due <= now) {
                    return self.trigger(now);
                }
                self.due
            }
            _ => None,
        };
        let deadlines =
            self.in_flight.values().filter_map(|since| self.deadline(*since)).filter(|d| *d > now);
        deadlines.chain(due).min().map_or(Decision::Wait, Decision::WaitUntil)
    }

    /// The manifest of this checkpoint has been written. Anything but those in flight is ignored.
    pub fn on_completed(&mut self, id: CheckpointId, now: Duration) -> Decision {
        if self.ended(id, now) {
            self.failures = 0;
        }
        self.on_timer(now)
    }

    /// This checkpoint will not complete. Its number is not used again: its records go with the next. Anything but
    /// those in flight is ignored.
    pub fn on_failed(&mut self, id: CheckpointId, now: Duration) -> Decision {
        if self.ended(id, now) {
            self.failures = self.failures.saturating_add(1);
            // After the final one there is no next.
            if self.failures > self.timing.tolerable_failures || self.is_final(id) {
                self.phase = Phase::Over;
                return Decision::GiveUp(id);
            }
        }
        self.on_timer(now)
    }

    /// Somebody asks for a checkpoint now, such as a savepoint: it does not wait for the interval or the pause.
    pub fn on_request(&mut self, now: Duration) -> Decision {
        self.asked = true;
        self.on_timer(now)
    }

    /// The job has reached the end of its input, or is to stop with a checkpoint: the last one follows as soon as
    /// there is room for it, and none after it.
    pub fn on_final(&mut self, now: Duration) -> Decision {
        if self.phase == Phase::Running {
            self.phase = Phase::Ending;
        }
        self.on_timer(now)
    }

    /// The job stops without a checkpoint.
    pub fn on_cancel(&mut self) {
        self.phase = Phase::Over;
    }

    fn deadline(&self, since: Duration) -> Option<Duration> {
        Some(since.saturating_add(self.timing.timeout?))
    }

    /// Whether it was in flight.
    fn ended(&mut self, id: CheckpointId, now: Duration) -> bool {
        let ended = self.in_flight.remove(&id).is_some();
        if ended {
            // After a slow one the pause counts, not the interval.
            self.rested = now.saturating_add(self.timing.min_pause);
            self.due = self.due.map(|due| due.max(self.rested));
        }
        ended
    }

    fn trigger(&mut self, now: Duration) -> Decision {
        self.last = self.last.next();
        self.in_flight.insert(self.last, now);
        self.due = self.timing.interval.map(|interval| now.saturating_add(interval).max(self.rested));
        self.asked = false;
        Decision::Trigger(self.last)
    }
}
