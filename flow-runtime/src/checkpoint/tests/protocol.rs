//! The protocol as a whole, in every order in which its steps can happen: the coordinator, the transactions that
//! checkpoints carry and those that wait for their commit are the real ones; around them a storage and a server that
//! fail, and processes that die.
//!
//! An exhaustive search over a small world: two subtasks, a few checkpoints, failures and crashes. Held in every
//! state: nothing is committed that no manifest names, and nothing twice. After each crash: all that was read before
//! the restored position is committed, and nothing after it.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};

use crate::{
    checkpoint::{CheckpointId, Coordinator, Decision, Timing},
    sink::pending::{Carried, Commits},
};

const SUBTASKS: usize = 2;

/// Names a transaction: the subtask, its attempt, and the only record that it holds.
type Handle = (usize, u32, u32);

/// What a checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Manifest {
    positions: [u32; SUBTASKS],
    handles: BTreeSet<Handle>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Subtask {
    /// The epoch that it is in.
    epoch: u64,
    /// The next record.
    position: u32,
    carried: Carried<Handle>,
    commits: Commits<Handle>,
    /// The newest checkpoint that it has heard to be complete.
    complete: u64,
    confirmed: u64,
    /// Committed at the server, and the answer is under way.
    unheard: bool,
}

/// A checkpoint in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Making {
    parts: BTreeMap<usize, (u32, Vec<Handle>)>,
    written: BTreeSet<usize>,
    failed: bool,
    /// The manifest was sent to the storage before anybody gave the checkpoint up.
    ordered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    // What dies with the process.
    attempt: u32,
    coordinator: Coordinator,
    subtasks: [Subtask; SUBTASKS],
    making: BTreeMap<u64, Making>,
    triggered: u64,
    // What does not.
    manifests: BTreeMap<u64, Manifest>,
    prepared: BTreeSet<Handle>,
    committed: BTreeMap<Handle, u32>,
    timing: Timing,
    // What may still happen.
    checkpoints: u32,
    failures: u32,
    crashes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Trigger,
    Barrier(usize),
    WritePart(u64, usize),
    FailPart(u64),
    OrderManifest(u64),
    WriteManifest(u64),
    TimeOut(u64),
    HearComplete(usize, u64),
    Commit(usize),
    HearCommit(usize),
    Crash,
}

/// A mistake to be found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// Only the last epoch's transaction goes into a checkpoint.
    CarriesTheLastOnly,
    /// Transactions are committed as soon as they are pre-committed.
    CommitsBeforeTheManifest,
    /// Transactions of the restored checkpoint are rolled back like any other.
    ForgetsOnRestore,
    /// A checkpoint counts as complete when its parts are written.
    CompletesWithoutManifest,
}

impl World {
    fn new(checkpoints: u32, max_concurrent: usize) -> Self {
        let timing = Timing {
            interval: None,
            min_pause: Duration::ZERO,
            timeout: None,
            max_concurrent,
            tolerable_failures: 10,
        };
        World {
            attempt: 0,
            coordinator: Coordinator::new(timing, CheckpointId(0), Duration::ZERO),
            subtasks: [Self::subtask(1, 0), Self::subtask(1, 0)],
            making: BTreeMap::new(),
            triggered: 0,
            timing,
            manifests: BTreeMap::new(),
            prepared: BTreeSet::new(),
            committed: BTreeMap::new(),
            checkpoints,
            failures: 1,
            crashes: 1,
        }
    }

    fn subtask(epoch: u64, position: u32) -> Subtask {
        let last = epoch - 1;
        let (carried, commits) = (Carried::new(), Commits::new());
        Subtask { epoch, position, carried, commits, complete: last, confirmed: last, unheard: false }
    }

    /// Everything that can happen now.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.checkpoints > 0 {
            steps.push(Step::Trigger);
        }
        for (i, subtask) in self.subtasks.iter().enumerate() {
            if subtask.epoch <= self.triggered {
                steps.push(Step::Barrier(i));
            }
            for (&id, making) in &self.making {
                if making.parts.contains_key(&i) && !making.written.contains(&i) && !making.failed {
                    steps.push(Step::WritePart(id, i));
                    if self.failures > 0 {
                        steps.push(Step::FailPart(id));
                    }
                }
            }
            for &id in self.complete().iter().filter(|id| **id > subtask.complete) {
                steps.push(Step::HearComplete(i, id));
            }
            if subtask.unheard {
                steps.push(Step::HearCommit(i));
            } else if subtask.commits.next(CheckpointId(subtask.complete)).is_some() {
                steps.push(Step::Commit(i));
            }
        }
        for (&id, making) in &self.making {
            if making.written.len() == SUBTASKS && !making.failed && !making.ordered {
                steps.push(Step::OrderManifest(id));
            }
            if making.ordered && !self.manifests.contains_key(&id) {
                steps.push(Step::WriteManifest(id));
            }
            if self.failures > 0 && !making.failed && !self.manifests.contains_key(&id) {
                steps.push(Step::TimeOut(id));
            }
        }
        if self.crashes > 0 {
            steps.push(Step::Crash);
        }
        steps
    }

    /// The checkpoints of this attempt that are known to be complete.
    fn complete(&self) -> Vec<u64> {
        let known =
            self.making.iter().filter(|(id, making)| !making.failed && self.manifests.contains_key(id));
        known.map(|(id, _)| *id).collect()
    }

    fn take(&mut self, step: Step, mistake: Mistake) -> Result<(), String> {
        match step {
            Step::Trigger => {
                self.checkpoints -= 1;
                if let Decision::Trigger(id) = self.coordinator.on_request(Duration::ZERO) {
                    self.trigger(id);
                }
            }
            Step::Barrier(i) => {
                let subtask = &mut self.subtasks[i];
                let (id, handle) = (subtask.epoch, (i, self.attempt, subtask.position));
                // The epoch's record is written, and pre-committed.
                subtask.position += 1;
                subtask.epoch += 1;
                self.prepared.insert(handle);
                subtask.commits.pre_committed(CheckpointId(id), handle);
                let mut handles =
                    subtask.carried.barrier(CheckpointId(id), Some(handle), CheckpointId(subtask.confirmed));
                if mistake == Mistake::CarriesTheLastOnly {
                    handles = vec![handle];
                }
                let position = subtask.position;
                if mistake == Mistake::CommitsBeforeTheManifest {
                    subtask.complete = id;
                }
                self.making.entry(id).or_default().parts.insert(i, (position, handles));
            }
            Step::WritePart(id, i) => drop(self.making.entry(id).or_default().written.insert(i)),
            Step::FailPart(id) | Step::TimeOut(id) => {
                self.failures -= 1;
                self.making.entry(id).or_default().failed = true;
                if let Decision::Trigger(id) = self.coordinator.on_failed(CheckpointId(id), Duration::ZERO) {
                    self.trigger(id);
                }
            }
            Step::OrderManifest(id) => {
                self.making.entry(id).or_default().ordered = true;
                if mistake == Mistake::CompletesWithoutManifest {
                    self.subtasks.iter_mut().for_each(|subtask| subtask.complete = subtask.complete.max(id));
                }
            }
            Step::WriteManifest(id) => {
                let making = self.making.entry(id).or_default();
                let mut manifest = Manifest::default();
                for (&i, (position, handles)) in &making.parts {
                    manifest.positions[i] = *position;
                    manifest.handles.extend(handles);
                }
                self.manifests.insert(id, manifest);
                if !making.failed
                    && let Decision::Trigger(id) =
                        self.coordinator.on_completed(CheckpointId(id), Duration::ZERO)
                {
                    self.trigger(id);
                }
            }
            Step::HearComplete(i, id) => self.subtasks[i].complete = id,
            Step::Commit(i) => {
                let subtask = &mut self.subtasks[i];
                let next = subtask.commits.next(CheckpointId(subtask.complete)).map(|(_, handle)| *handle);
                subtask.unheard = true;
                if let Some(handle) = next {
                    self.commit(handle)?;
                }
            }
            Step::HearCommit(i) => {
                let subtask = &mut self.subtasks[i];
                subtask.unheard = false;
                if let Some((id, _)) = subtask.commits.next(CheckpointId(subtask.complete)) {
                    subtask.confirmed = subtask.confirmed.max(id.0);
                }
                subtask.commits.committed();
            }
            Step::Crash => self.crash(mistake)?,
        }
        Ok(())
    }

    fn trigger(&mut self, CheckpointId(id): CheckpointId) {
        self.triggered = id;
        self.making.entry(id).or_default();
    }

    /// At the server. Committing again is known to be that.
    fn commit(&mut self, handle: Handle) -> Result<(), String> {
        if !self.manifests.values().any(|manifest| manifest.handles.contains(&handle)) {
            return Err(format!("{handle:?} is committed, and no manifest names it"));
        }
        if self.prepared.remove(&handle) {
            *self.committed.entry(handle).or_default() += 1;
        } else if !self.committed.contains_key(&handle) {
            return Err(format!("{handle:?} is lost"));
        }
        let (subtask, _, record) = handle;
        let times: u32 = self
            .committed
            .iter()
            .filter(|((s, _, r), _)| (*s, *r) == (subtask, record))
            .map(|(_, n)| n)
            .sum();
        if times > 1 {
            return Err(format!("record {record} of subtask {subtask} is committed {times} times"));
        }
        Ok(())
    }

    /// The process dies, and the next attempt recovers.
    fn crash(&mut self, mistake: Mistake) -> Result<(), String> {
        self.crashes -= 1;
        self.attempt += 1;
        let (last, restored) = match self.manifests.last_key_value() {
            Some((id, manifest)) => (*id, manifest.clone()),
            None => (0, Manifest::default()),
        };
        if mistake != Mistake::ForgetsOnRestore {
            for handle in restored.handles {
                self.commit(handle)?;
            }
        }
        self.prepared.clear();
        // No epoch is lost, and none is ahead.
        for (subtask, &position) in restored.positions.iter().enumerate() {
            for record in 0..position + 4 {
                let there = self.committed.keys().any(|(s, _, r)| (*s, *r) == (subtask, record));
                if there != (record < position) {
                    return Err(format!(
                        "restored at {position}, record {record} of subtask {subtask} is committed: {there}"
                    ));
                }
            }
        }
        self.coordinator = Coordinator::new(self.timing, CheckpointId(last), Duration::ZERO);
        self.triggered = last;
        self.making.clear();
        self.subtasks = restored.positions.map(|position| Self::subtask(last + 1, position));
        Ok(())
    }
}

/// Searches all orders. Returns how many states there are, or the way to a wrong one.
fn search(start: World, mistake: Mistake) -> Result<usize, String> {
    let mut seen = HashSet::new();
    // Each state that was reached first by this step from that one.
    let mut found: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut open = vec![(start, 0)];
    while let Some((world, at)) = open.pop() {
        for step in world.steps() {
            let mut next = world.clone();
            next.take(step, mistake).map_err(|problem| {
                let mut way = vec![step];
                let mut at = at;
                while let (before, Some(step)) = found[at] {
                    way.push(step);
                    at = before;
                }
                way.reverse();
                format!("{problem}, after {way:?}")
            })?;
            if seen.insert(next.clone()) {
                found.push((at, Some(step)));
                open.push((next, found.len() - 1));
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn no_order_of_steps_loses_or_repeats_anything() {
    for (checkpoints, max_concurrent) in [(3, 1), (2, 2)] {
        let states = search(World::new(checkpoints, max_concurrent), Mistake::None).unwrap();
        assert!(states > 3_000, "{states} states only");
    }
}

#[test]
fn every_mistake_is_found() {
    for mistake in [
        Mistake::CarriesTheLastOnly,
        Mistake::CommitsBeforeTheManifest,
        Mistake::ForgetsOnRestore,
        Mistake::CompletesWithoutManifest,
    ] {
        assert!(search(World::new(2, 1), mistake).is_err(), "{mistake:?} went unnoticed");
    }
}
