//! How event time passes through a chain: from its inputs or generators, through its windows, to its outputs.
//!
//! Each window and each timed output goes by one *origin* of event time: a `.watermarks(..)` in the chain, what arrives
//! with the records, or what an operator lets through that holds records back. After each batch, the windows of an origin whose watermark has grown fire, in the order of
//! the chain; what they emit runs through the rest of the loop; and only then the watermark goes to the outputs.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{ChainError, Work};
use crate::{
    async_io::HoldsBack,
    checkpoint::WatermarkPart,
    error::Error,
    time::{Clock, Timestamp, Watermark},
    watermark::{Generating, Mark, Minimum, Signal, WaitingClock},
    window::{Turn, lent::WindowPort},
    worker::{Alarm, Control},
};

/// What follows a window: advances it, if there is a new watermark, and emits what has fired.
pub(crate) type WatermarkLoop = Box<dyn FnMut(Turn) -> Result<(), ChainError>>;

/// A `.watermarks(..)` in a chain.
pub(crate) struct Generators {
    pub(crate) operator: usize,
    pub(crate) port: Rc<dyn Generating>,
}

/// A window in a chain.
pub(crate) struct Firing {
    pub(crate) operator: usize,
    /// The `.watermarks(..)` it goes by; `None` for what arrives.
    pub(crate) origin: Option<usize>,
    /// How far it has come.
    pub(crate) reached: Option<Watermark>,
    /// How far it had come while there was input. Who goes on after the end finds more input; not all of it is late.
    pub(crate) before_end: Option<Watermark>,
    pub(crate) port: Rc<dyn WindowPort>,
    /// Of an operator that holds event time back until its records have gone on.
    pub(crate) holds: Option<Rc<dyn HoldsBack>>,
    pub(crate) late: Late,
    pub(crate) run: WatermarkLoop,
}

impl Firing {
    /// Where it is, for errors.
    fn place(&self, record: u64) -> String {
        match self.holds {
            None => self.port.result().to_owned(),
            Some(_) => format!("the answer to record {record} of this attempt"),
        }
    }
}

/// Counts the records that came when all of their windows were over: those that are dropped, and those that go to the
/// late output.
pub(crate) struct Late {
    dropped: Arc<AtomicU64>,
    dropped_so_far: u64,
    output: Arc<AtomicU64>,
    output_so_far: u64,
}

impl Late {
    pub(crate) fn of(control: &Control, uid: &str) -> Self {
        let (dropped, output) = (control.late(uid), control.late_output(uid));
        Late { dropped, dropped_so_far: 0, output, output_so_far: 0 }
    }

    /// What has come so far. As with records that are skipped, the log says so at each power of two.
    fn see(&mut self, port: &dyn WindowPort, uid: &str) {
        let (late, before) = (port.late(), self.dropped_so_far);
        if late > before {
            self.dropped.fetch_add(late - before, Ordering::Relaxed);
            if before.checked_ilog2() < late.checked_ilog2() {
                tracing::warn!(
                    operator = uid,
                    late,
                    "dropped records that came too late for their window or join"
                );
            }
            self.dropped_so_far = late;
        }
        let output = port.late_output();
        self.output.fetch_add(output - self.output_so_far, Ordering::Relaxed);
        self.output_so_far = output;
    }
}

/// The event time of a chain.
pub(crate) struct Times {
    generators: Vec<Generators>,
    firings: Vec<Firing>,
    /// What arrives on the edges, if they carry event time.
    arriving: Option<Minimum>,
    /// The clock of processing time.
    clock: Clock,
    /// Whether records get their time from it.
    by_clock: bool,
    /// The one that decides on idleness, if there is any.
    waiting: Option<WaitingClock>,
}

impl Times {
    /// `arriving` is how many senders there are on edges that carry event time. `None` for a chain that knows none.
    pub(crate) fn new(
        generators: Vec<Generators>,
        firings: Vec<Firing>,
        arriving: usize,
        clock: &Clock,
    ) -> Option<Self> {
        if generators.is_empty() && firings.is_empty() && arriving == 0 {
            return None;
        }
        let by_clock = generators.iter().any(|generators| generators.port.by_clock())
            || firings.iter().any(|firing| firing.port.by_clock());
        let needs_clock = generators.iter().any(|generators| generators.port.needs_clock());
        Some(Times {
            generators,
            firings,
            arriving: (arriving > 0).then(|| Minimum::of(arriving, None)),
            clock: clock.clone(),
            by_clock,
            waiting: needs_clock.then(|| WaitingClock::running(clock.clone())),
        })
    }

    /// A sender says something.
    pub(crate) fn hear(&mut self, sender: usize, signal: Signal) {
        if let Some(arriving) = &mut self.arriving {
            arriving.hear(sender, signal);
        }
    }

    /// Before each batch: reads the clock, if anything here goes by it, and so once for all.
    pub(crate) fn tick(&self) {
        if self.by_clock {
            self.tell(self.clock.now());
        }
    }

    /// Tells the time to all that go by the clock.
    fn tell(&self, now: Timestamp) {
        for generators in &self.generators {
            generators.port.tick(now);
        }
        for firing in &self.firings {
            firing.port.tell_time(now);
        }
    }

    /// Records of an edge are about to go through the loop.
    pub(crate) fn begin(&self) {
        self.tick();
        let now = self.now();
        for generators in &self.generators {
            generators.port.begin(None, now);
        }
    }

    /// All input is read.
    pub(crate) fn end(&self) {
        for generators in &self.generators {
            generators.port.end();
        }
    }

    /// By the clock that decides on idleness.
    pub(crate) fn now(&self) -> Duration {
        self.waiting.as_ref().map_or(Duration::ZERO, WaitingClock::now)
    }

    /// Whether the chain could read, or is held up.
    pub(crate) fn may_read(&mut self, may: bool) {
        if let Some(clock) = &mut self.waiting {
            if may {
                clock.go_on();
            } else {
                clock.stop();
            }
        }
    }

    /// When to look again, although nothing may arrive.
    pub(crate) fn look_again(&self) -> Option<Duration> {
        let (now, clock) = (self.now(), self.clock.now());
        let generators = self.generators.iter().filter_map(|generators| generators.port.ask_again(now));
        let timers = self.firings.iter().filter_map(|firing| firing.port.next_timer());
        // A timer is due when its time has passed, and not before.
        generators.chain(timers.map(|time| time.since(clock) + Duration::from_millis(1))).min()
    }

    /// How far the event time of an origin has come.
    pub(crate) fn mark(&mut self, origin: Option<usize>) -> Mark {
        let now = self.now();
        match origin {
            Some(operator) => {
                if let Some(generators) = self.generators.iter().find(|own| own.operator == operator) {
                    return generators.port.mark(now);
                }
                let firing = self.firings.iter().find(|firing| firing.operator == operator);
                let Some(holds) = firing.and_then(|firing| firing.holds.clone()) else {
                    return Mark::default();
                };
                let before = firing.and_then(|firing| firing.origin);
                holds.mark(self.mark(before))
            }
            None => self.arriving.as_mut().map_or_else(Mark::default, Minimum::mark),
        }
    }

    /// Lets the windows fire.
    pub(crate) fn fire(&mut self, work: &Work) -> Result<(), Error> {
        if self.firings.is_empty() {
            self.tick();
            return Ok(());
        }
        let now = self.clock.now();
        if self.by_clock {
            self.tell(now);
        }
        for i in 0..self.firings.len() {
            let mark = self.mark(self.firings[i].origin);
            let firing = &mut self.firings[i];
            let new = mark.watermark.filter(|new| firing.reached.is_none_or(|reached| *new > reached));
            work.run(|| (firing.run)(Turn::new(new, now))).map_err(|error| {
                let place = firing.place(error.record);
                work.place(error, Some(place))
            })?;
            firing.reached = firing.reached.max(new);
            firing.before_end = firing.before_end.max(new.filter(|new| *new < Watermark::MAX));
            firing.late.see(&*firing.port, &work.uids[firing.operator]);
        }
        Ok(())
    }

    /// The operators that hold records back.
    fn holding(&self) -> impl Iterator<Item = &Rc<dyn HoldsBack>> {
        self.firings.iter().filter_map(|firing| firing.holds.as_ref())
    }

    /// `alarm` wakes the chain.
    pub(crate) fn start(&self, alarm: &Alarm) {
        self.holding().for_each(|holds| holds.start(alarm.clone()));
    }

    /// Whether an operator holds records back, or may.
    pub(crate) fn holds_back(&self) -> bool {
        self.holding().next().is_some()
    }

    /// Whether an operator takes no more records now.
    pub(crate) fn is_full(&self) -> bool {
        self.holding().any(|holds| holds.is_full())
    }

    /// Whether no operator holds anything back.
    pub(crate) fn is_empty(&self) -> bool {
        self.holding().all(|holds| holds.is_empty())
    }

    /// Whether there is more to emit, now that event time has gone on.
    pub(crate) fn has_more(&self) -> bool {
        self.holding().any(|holds| holds.has_more())
    }

    /// What a checkpoint remembers. A chain that runs ahead of its barriers, as at-least-once lets it, does not know
    /// how far it had come: its windows begin anew then.
    pub(crate) fn parts(&self, work: &Work, aligned: bool) -> Vec<WatermarkPart> {
        let part = |operator: usize, watermark| WatermarkPart {
            uid: work.uids[operator].to_string(),
            subtask: work.subtask,
            watermark,
        };
        let generators =
            self.generators.iter().map(|generators| part(generators.operator, generators.port.reached()));
        let firings = self.firings.iter().map(|firing| {
            let reached = firing.holds.as_ref().map_or(firing.before_end, |holds| holds.reached());
            part(firing.operator, reached)
        });
        generators.chain(firings).filter(|_| aligned).collect()
    }
}
