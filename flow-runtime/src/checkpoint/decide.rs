//! When to take a checkpoint. Facts in, decision out: no I/O and no clock. Times are durations since any fixed
//! moment, such as the start of the job.

use std::time::Duration;

use super::CheckpointId;

/// How often to take checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From one trigger to the next; `None` takes none but those that are asked for, and the final one.
    pub interval: Option<Duration>,
    /// At least this long from the end of one to the trigger of the next, so that the job also gets to work.
    pub min_pause: Duration,
    /// A checkpoint that takes as long has failed.
    pub timeout: Option<Duration>,
}

/// What to do now.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Begin this checkpoint.
    Trigger(CheckpointId),
    /// Ask again at this time, counted like `now`: the next one is due, or the one in flight
    /// [overdue](Coordinator::overdue).
    WaitUntil(Duration),
    /// Ask again when something has happened.
    Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The job wants to end: one more, then none.
    Ending,
    /// The last one has been triggered, or none is wanted any more.
    Over,
}

/// Decides when to trigger which checkpoint: one at a time, numbered without gaps.
#[derive(Clone, Debug)]
pub struct Coordinator {
    timing: Timing,
    phase: Phase,
    /// The last one that was triggered, or that was there before.
    last: CheckpointId,
    /// Whether `last` is in flight, and since when.
    since: Option<Duration>,
    /// When the next periodic one is due.
    due: Option<Duration>,
    /// Whether one was asked for that is not due by time.
    asked: bool,
}

impl Coordinator {
    /// The first checkpoint will be the one after `last`, an interval from `now`.
    #[must_use]
    pub fn new(timing: Timing, last: CheckpointId, now: Duration) -> Self {
        let due = timing.interval.map(|interval| now.saturating_add(interval));
        Coordinator { timing, phase: Phase::Running, last, since: None, due, asked: false }
    }

    /// The checkpoint in flight.
    #[must_use]
    pub fn in_flight(&self) -> Option<CheckpointId> {
        self.since.map(|_| self.last)
    }

    /// The checkpoint in flight, if it has taken too long: say [`on_failed`](Self::on_failed).
    #[must_use]
    pub fn overdue(&self, now: Duration) -> Option<CheckpointId> {
        self.deadline().filter(|deadline| *deadline <= now).map(|_| self.last)
    }

    /// Asked at the time that [`Decision::WaitUntil`] named, or at any other.
    pub fn on_timer(&mut self, now: Duration) -> Decision {
        if self.since.is_some() {
            return self.deadline().filter(|d| *d > now).map_or(Decision::Wait, Decision::WaitUntil);
        }
        if self.phase == Phase::Over {
            return Decision::Wait;
        }
        if self.phase == Phase::Ending {
            self.phase = Phase::Over;
            return self.trigger(now);
        }
        match self.due {
            _ if self.asked => self.trigger(now),
            Some(due) if due <= now => self.trigger(now),
            Some(due) => Decision::WaitUntil(due),
            None => Decision::Wait,
        }
    }

    /// The manifest of this checkpoint has been written. Anything but the one in flight is ignored.
    pub fn on_completed(&mut self, id: CheckpointId, now: Duration) -> Decision {
        self.ended(id, now);
        self.on_timer(now)
    }

    /// This checkpoint will not complete. Its number is not used again: the records after its barrier belong to
    /// the next.
    pub fn on_failed(&mut self, id: CheckpointId, now: Duration) -> Decision {
        self.ended(id, now);
        self.on_timer(now)
    }

    /// Somebody asks for a checkpoint now, such as a savepoint: it does not wait for the interval or the pause.
    pub fn on_request(&mut self, now: Duration) -> Decision {
        self.asked = true;
        self.on_timer(now)
    }

    /// The job has reached the end of its input, or is to stop with a checkpoint: the last one follows as soon as
    /// none is in flight, and none after it.
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

    fn deadline(&self) -> Option<Duration> {
        Some(self.since?.saturating_add(self.timing.timeout?))
    }

    fn ended(&mut self, id: CheckpointId, now: Duration) {
        if self.in_flight() == Some(id) {
            self.since = None;
            // After a slow one the pause counts, not the interval.
            self.due = self.due.map(|due| due.max(now.saturating_add(self.timing.min_pause)));
        }
    }

    fn trigger(&mut self, now: Duration) -> Decision {
        self.last = self.last.next();
        self.since = Some(now);
        self.due = self.timing.interval.map(|interval| now.saturating_add(interval));
        self.asked = false;
        Decision::Trigger(self.last)
    }
}
