//! The generators of one `.watermarks(..)` in one subtask: one per split.

use std::{
    cell::{RefCell, RefMut},
    collections::{BTreeSet, HashMap},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{
    Aligner, IntoTimestamp, Mark, Positions, Stamp, Waiting, WatermarkGenerator, WatermarkStrategy,
    minimum::combine,
};
use crate::{
    error::BoxError,
    source::Runs,
    time::{Clock, Timestamp, Watermark, millis},
};

/// A handle to the generators of one operator in one subtask; the chain's loop borrows it for each batch.
#[derive(Debug)]
pub struct Watermarks<G>(Rc<RefCell<Stamping<G>>>);

impl<G> Clone for Watermarks<G> {
    fn clone(&self) -> Self {
        Watermarks(Rc::clone(&self.0))
    }
}

impl<G: WatermarkGenerator> Watermarks<G> {
    /// `per_split` says whether the chain reads a source. `reached` is what a checkpoint knows to have been reached.
    ///
    /// # Errors
    /// What is wrong with the strategy; then it goes by what it could understand.
    pub(crate) fn new<S>(
        strategy: S,
        per_split: bool,
        aligned: Option<(usize, Arc<Positions>)>,
        reached: Option<Watermark>,
        clock: &Clock,
    ) -> Result<Self, (BoxError, Self)>
    where
        S: WatermarkStrategy<Generator = G>,
    {
        let wrong = strategy.check().err().or_else(|| misaligned(&strategy, per_split));
        let aligner = strategy.alignment().zip(aligned);
        let aligner = aligner.map(|(span, (subtask, positions))| Aligner::new(span, subtask, positions));
        let mut stamping = Stamping {
            groups: Vec::new(),
            by_split: HashMap::new(),
            current: 0,
            runs: Vec::new(),
            run: None,
            limit: i64::MAX,
            apart: i64::MAX,
            idleness: strategy.idleness(),
            max_ahead: strategy.max_ahead(),
            aligner,
            clock: clock.clone(),
            period: strategy.period(),
            pace: Pace { interval: strategy.interval(), said: None, held: false },
            // What was not late before a restart is not late after it.
            now: reached.map_or(Timestamp::MIN, |reached| reached.timestamp().plus_millis(1)),
            known: !per_split,
            restored: reached,
            seen: reached,
            reached,
            ended: false,
            generator: strategy.generator(),
            out: false,
            make: Box::new(move || strategy.generator()),
        };
        if !per_split {
            stamping.add_group(Duration::ZERO, 1);
        }
        let watermarks = Watermarks(Rc::new(RefCell::new(stamping)));
        match wrong {
            None => Ok(watermarks),
            Some(why) => Err((why, watermarks)),
        }
    }

    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> RefMut<'_, Stamping<G>> {
        let mut stamping = self.0.borrow_mut();
        stamping.take_out();
        stamping
    }

    /// Between batches, when each generator is where it belongs.
    fn borrow_all(&self) -> RefMut<'_, Stamping<G>> {
        let mut stamping = self.0.borrow_mut();
        stamping.put_back();
        stamping
    }
}

/// What the loop borrows: takes the timestamps of records.
pub struct Stamping<G> {
    /// Of one split each; splits whose records come mixed share one. `None` where all splits are read to their end.
    groups: Vec<Option<Group<G>>>,
    by_split: HashMap<String, usize>,
    /// The group of the record that the loop is at.
    current: usize,
    /// Where a batch holds records of several splits: the group of each of its runs, and the run of the current record.
    runs: Vec<usize>,
    run: Option<Arc<AtomicUsize>>,
    /// That of the current group while it is `out`, so that no record has to look for it; otherwise nobody's.
    generator: G,
    out: bool,
    /// The highest timestamp allowed.
    limit: i64,
    /// From which time on a record has to be looked at apart: from the first that may not be allowed, or all.
    apart: i64,
    idleness: Option<Duration>,
    max_ahead: Option<Duration>,
    aligner: Option<Aligner>,
    clock: Clock,
    period: Option<Duration>,
    pace: Pace,
    /// What the clock said before the batch.
    now: Timestamp,
    /// Whether the subtask knows its splits; until then it cannot be idle.
    known: bool,
    restored: Option<Watermark>,
    /// The highest of all splits, also of those that are read to their end.
    seen: Option<Watermark>,
    /// What was said last.
    reached: Option<Watermark>,
    ended: bool,
    make: Box<dyn Fn() -> G>,
}

/// How often a new watermark is said.
struct Pace {
    interval: Option<Duration>,
    /// When the last one was, by the clock of the chain.
    said: Option<Duration>,
    /// Whether there is a new one that is not said yet.
    held: bool,
}

impl Pace {
    /// Whether a watermark that is `new` may be said now.
    fn allows(&mut self, new: bool, now: Duration) -> bool {
        let Some(interval) = self.interval else { return true };
        if new && self.said.is_some_and(|said| now.saturating_sub(said) < interval) {
            self.held = true;
            return false;
        }
        if new {
            (self.said, self.held) = (Some(now), false);
        }
        true
    }

    /// When what is held may be said.
    fn left(&self, now: Duration) -> Option<Duration> {
        let said = self.said.filter(|_| self.held)?;
        Some((said + self.interval?).saturating_sub(now))
    }
}

struct Group<G> {
    generator: G,
    watermark: Option<Watermark>,
    /// When the last record came, by the clock of the chain.
    active: Duration,
    /// How many splits are not read to their end.
    splits: usize,
}

impl<G> std::fmt::Debug for Stamping<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stamping").field("reached", &self.reached).finish_non_exhaustive()
    }
}

impl<G: WatermarkGenerator> Stamping<G> {
    /// Takes the timestamp of the record that the batch has given last.
    ///
    /// # Errors
    /// When there is none, or it is too far ahead.
    #[inline(always)]
    pub fn stamp(&mut self, time: impl IntoTimestamp) -> Result<Timestamp, BoxError> {
        let stamp = time.stamp()?;
        if stamp.time.as_millis() >= self.apart {
            self.stamp_apart(stamp)?;
        } else {
            self.generator.on_record(stamp);
        }
        Ok(stamp.time)
    }

    /// A record that has to be looked at.
    #[inline(never)]
    fn stamp_apart(&mut self, stamp: Stamp) -> Result<(), BoxError> {
        if stamp.time.as_millis() > self.limit {
            return Err(self.too_far_ahead(stamp.time));
        }
        match &self.run {
            None => self.generator.on_record(stamp),
            Some(run) => {
                let group = self.runs.get(run.load(Ordering::Relaxed)).copied().unwrap_or(self.current);
                if let Some(Some(group)) = self.groups.get_mut(group) {
                    group.generator.on_record(stamp);
                }
            }
        }
        Ok(())
    }

    /// Takes the time of the batch for that of the record.
    #[inline(always)]
    pub fn enter(&mut self) -> Timestamp
    where
        G: Enters,
    {
        self.now
    }

    #[cold]
    fn too_far_ahead(&self, time: Timestamp) -> BoxError {
        format!(
            "the timestamp {time} is more than {:?} ahead of this machine's clock",
            self.max_ahead.unwrap_or_default()
        )
        .into()
    }

    fn add_group(&mut self, now: Duration, splits: usize) -> usize {
        let mut generator = (self.make)();
        if self.period.is_some() && self.now > Timestamp::MIN {
            generator.on_clock(self.now);
        }
        self.groups.push(Some(Group { generator, watermark: self.restored, active: now, splits }));
        self.groups.len() - 1
    }

    fn group_of(&mut self, split: &str, now: Duration) -> usize {
        match self.by_split.get(split) {
            Some(group) => *group,
            None => {
                let group = self.add_group(now, 1);
                self.by_split.insert(split.to_owned(), group);
                group
            }
        }
    }

    /// Splits whose records come mixed get one generator: which record is whose cannot be told.
    fn join<'s>(&mut self, splits: impl Iterator<Item = &'s str>, now: Duration) -> usize {
        let groups: Vec<usize> = splits.map(|split| self.group_of(split, now)).collect();
        let Some(&first) = groups.first() else { return 0 };
        for other in groups {
            if other == first {
                continue;
            }
            if let Some(gone) = self.groups[other].take()
                && let Some(group) = &mut self.groups[first]
            {
                group.splits += gone.splits;
                group.watermark = group.watermark.min(gone.watermark);
            }
            for group in self.by_split.values_mut().filter(|group| **group == other) {
                *group = first;
            }
        }
        first
    }
}

/// The splits of a batch's records.
#[derive(Debug, Default)]
pub(crate) struct SplitRuns {
    /// Whose each record is, if they are of several.
    pub(crate) runs: Option<Runs>,
    /// The splits that the batch advances.
    pub(crate) advanced: Vec<String>,
}

/// Whether splits can be aligned here, and will not wait for ever.
fn misaligned<S: WatermarkStrategy>(strategy: &S, per_split: bool) -> Option<BoxError> {
    strategy.alignment()?;
    if !per_split {
        return Some("`with_alignment` is about the splits of a source: put `.watermarks(..)` right behind it, before any exchange".into());
    }
    match strategy.idleness() {
        Some(_) => None,
        None => Some("`with_alignment` without `with_idleness`: a split in which nothing happens would stop all others; add `.with_idleness(\"1m\")`".into()),
    }
}

/// What needs no timestamps of records.
#[diagnostic::on_unimplemented(
    message = "watermarks by a strategy that needs the timestamps of records",
    label = "say when records happened: `.watermarks(.., |record| ..)`"
)]
pub trait Enters {}
impl Enters for super::Entering {}

/// What the engine needs of the generators, whatever their type.
pub(crate) trait Generating {
    /// Whether the clock says something to them.
    fn by_clock(&self) -> bool;
    /// The clock says so.
    fn tick(&self, now: Timestamp);
    /// The subtask has these splits.
    fn assigned(&self, splits: Vec<String>, now: Duration);
    /// A batch is about to go through the loop.
    fn begin(&self, batch: Option<&SplitRuns>, now: Duration);
    /// Which splits are to wait for others; `None` where none ever are.
    fn align(&self, now: Duration) -> Option<Waiting>;
    /// The source knows how far event time has come in a split.
    fn promised(&self, split: &str, watermark: Watermark);
    /// A split is read to its end.
    fn finished(&self, split: &str);
    /// All input is read.
    fn end(&self);
    /// How far event time has come.
    fn mark(&self, now: Duration) -> Mark;
    /// What a checkpoint remembers: how far event time had come while there was input.
    fn reached(&self) -> Option<Watermark>;
    /// When to ask again, although nothing may come.
    fn ask_again(&self, now: Duration) -> Option<Duration>;
    /// Whether time counts.
    fn needs_clock(&self) -> bool;
}

impl<G: WatermarkGenerator> Generating for Watermarks<G> {
    fn assigned(&self, splits: Vec<String>, now: Duration) {
        let mut stamping = self.borrow_all();
        stamping.known = true;
        for split in splits {
            stamping.group_of(&split, now);
        }
        // What is found later begins with nothing.
        stamping.restored = None;
    }

    fn by_clock(&self) -> bool {
        self.0.borrow().period.is_some()
    }

    fn tick(&self, now: Timestamp) {
        let mut stamping = self.borrow_all();
        let stamping = &mut *stamping;
        stamping.now = stamping.now.max(now);
        if stamping.period.is_some() {
            for group in stamping.groups.iter_mut().flatten() {
                group.generator.on_clock(stamping.now);
            }
        }
    }

    fn begin(&self, batch: Option<&SplitRuns>, now: Duration) {
        let mut stamping = self.borrow_all();
        let stamping = &mut *stamping;
        if let Some(ahead) = stamping.max_ahead {
            stamping.limit = stamping.clock.now().plus_millis(millis(ahead)).as_millis();
        }
        stamping.runs.clear();
        stamping.run = None;
        let Some(batch) = batch else {
            stamping.touch(0, now);
            return;
        };
        match (&batch.runs, &batch.advanced[..]) {
            (None, []) => {
                // A source that has no positions.
                let all: Vec<String> = stamping.by_split.keys().cloned().collect();
                stamping.current = stamping.join(all.iter().map(String::as_str), now);
                stamping.touch(stamping.current, now);
            }
            (None, advanced) => {
                stamping.current = stamping.join(advanced.iter().map(String::as_str), now);
                stamping.touch(stamping.current, now);
            }
            (Some(runs), _) => {
                for split in &runs.splits {
                    let group = stamping.group_of(split, now);
                    stamping.touch(group, now);
                    stamping.runs.push(group);
                }
                stamping.run = Some(Arc::clone(&runs.current));
            }
        }
    }

    fn align(&self, now: Duration) -> Option<Waiting> {
        let mut stamping = self.borrow_all();
        let stamping = &mut *stamping;
        let aligner = stamping.aligner.as_mut().filter(|_| stamping.known)?;
        for group in stamping.groups.iter_mut().flatten() {
            group.watermark = group.watermark.max(group.generator.watermark());
        }
        let idleness = stamping.idleness.unwrap_or(Duration::MAX);
        let awake = stamping.groups.iter().flatten();
        let awake = awake.filter(|group| now.saturating_sub(group.active) < idleness);
        let limit = aligner.limit(awake.map(|group| group.watermark));
        let ahead = |group: &Group<G>| group.watermark.is_some_and(|mark| mark.timestamp() > limit);
        for group in stamping.groups.iter_mut().flatten().filter(|group| ahead(group)) {
            // Who waits for others is not idle.
            group.active = now;
        }
        let waits = |group: &usize| stamping.groups[*group].as_ref().is_some_and(ahead);
        let splits = stamping.by_split.iter().filter(|(_, group)| waits(group));
        let splits: BTreeSet<String> = splits.map(|(split, _)| split.clone()).collect();
        let all = !splits.is_empty() && splits.len() == stamping.by_split.len();
        Some(Waiting { splits, all })
    }

    fn promised(&self, split: &str, watermark: Watermark) {
        let mut stamping = self.borrow_all();
        let Some(&group) = stamping.by_split.get(split) else { return };
        // Of several splits together, one alone does not tell.
        if let Some(Some(group)) = stamping.groups.get_mut(group)
            && group.splits == 1
        {
            group.watermark = group.watermark.max(Some(watermark));
        }
    }

    fn finished(&self, split: &str) {
        let mut stamping = self.borrow_all();
        let stamping = &mut *stamping;
        let Some(group) = stamping.by_split.remove(split) else { return };
        if let Some(Some(last)) = stamping.groups.get_mut(group) {
            last.splits -= 1;
            if last.splits == 0 {
                let watermark = last.watermark.max(last.generator.watermark());
                stamping.seen = stamping.seen.max(watermark);
                stamping.groups[group] = None;
            }
        }
    }

    fn end(&self) {
        let mut stamping = self.borrow_all();
        stamping.ended = true;
        // Nobody asks any more, and others may wait for what was said last.
        if let Some(aligner) = &mut stamping.aligner {
            aligner.limit(std::iter::empty());
        }
    }

    fn mark(&self, now: Duration) -> Mark {
        let mut stamping = self.borrow_all();
        let stamping = &mut *stamping;
        if stamping.ended {
            return Mark { watermark: Some(Watermark::MAX), idle: false };
        }
        if !stamping.known {
            return Mark { watermark: stamping.reached, idle: false };
        }
        for group in stamping.groups.iter_mut().flatten() {
            group.watermark = group.watermark.max(group.generator.watermark());
            stamping.seen = stamping.seen.max(group.watermark);
        }
        let idleness = stamping.idleness;
        let mut mark = combine(stamping.groups.iter().flatten().map(|group| Mark {
            watermark: group.watermark,
            idle: idleness.is_some_and(|span| now.saturating_sub(group.active) >= span),
        }));
        if mark.idle {
            mark.watermark = stamping.seen;
        }
        if stamping.pace.allows(mark.watermark > stamping.reached, now) {
            stamping.reached = stamping.reached.max(mark.watermark);
        }
        Mark { watermark: stamping.reached, idle: mark.idle }
    }

    fn reached(&self) -> Option<Watermark> {
        self.0.borrow().reached
    }

    fn ask_again(&self, now: Duration) -> Option<Duration> {
        let stamping = self.0.borrow();
        if stamping.ended {
            return None;
        }
        let idle = stamping.idleness.and_then(|span| {
            let spans =
                stamping.groups.iter().flatten().map(|group| (group.active + span).saturating_sub(now));
            spans.filter(|left| !left.is_zero()).min()
        });
        [idle, stamping.period, stamping.pace.left(now)].into_iter().flatten().min()
    }

    fn needs_clock(&self) -> bool {
        let stamping = self.0.borrow();
        stamping.idleness.is_some() || stamping.pace.interval.is_some()
    }
}

impl<G> Stamping<G> {
    /// Takes out the generator of the batch that comes, if its records are all of one group. Those of several have to be
    /// looked at one by one.
    fn take_out(&mut self) {
        let of_one = self.run.is_none();
        self.apart = if of_one { self.limit } else { i64::MIN };
        if !self.out && of_one {
            self.exchange();
            self.out = true;
        }
    }

    fn put_back(&mut self) {
        if self.out {
            self.exchange();
            self.out = false;
        }
    }

    /// What records do to a generator that is in no group is never asked for.
    fn exchange(&mut self) {
        if let Some(Some(group)) = self.groups.get_mut(self.current) {
            std::mem::swap(&mut self.generator, &mut group.generator);
        }
    }

    fn touch(&mut self, group: usize, now: Duration) {
        if let Some(Some(group)) = self.groups.get_mut(group) {
            group.active = now;
        }
    }
}

#[cfg(test)]
mod tests;
