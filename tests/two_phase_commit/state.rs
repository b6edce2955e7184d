//! What a sink remembers beside its transactions.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use flow::{
    BoxError, Error, Redistribution, TransactionHandle, TwoPhaseCommit, pipeline,
    sink::{CommitError, Committed, SinkContext, SinkState, Transaction},
    testing::{Harness, Input},
};

/// Sends numbers in packets of ten. What is not enough for one is held back across checkpoints.
#[derive(Clone, Default)]
struct Packets {
    outside: Arc<Mutex<Outside>>,
    mistake: Option<Mistake>,
}

#[derive(Default)]
struct Outside {
    pending: BTreeMap<String, Vec<u64>>,
    visible: BTreeMap<String, Vec<u64>>,
    /// What each subtask began with: the numbers held back, and the highest ones of all subtasks.
    begun: Vec<(usize, Vec<u64>, Vec<u64>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    AsksLate,
    AsksForAnotherType,
}

struct Open {
    name: String,
    held: SinkState<Vec<u64>>,
    highest: SinkState<Vec<u64>>,
    packets: Vec<u64>,
}

#[derive(TransactionHandle)]
struct Named {
    name: String,
}

fn held(cx: &SinkContext) -> Result<SinkState<Vec<u64>>, BoxError> {
    cx.operator_state("held", Redistribution::Even)
}

fn highest(cx: &SinkContext) -> Result<SinkState<Vec<u64>>, BoxError> {
    cx.operator_state("highest", Redistribution::Union)
}

impl TwoPhaseCommit for Packets {
    type Record = u64;
    type Live = Open;
    type Handle = Named;

    fn opened(&self, cx: &SinkContext) -> Result<(), BoxError> {
        let (held, highest) = (held(cx)?, highest(cx)?);
        // Each goes on from the highest of all, and says so itself from then on.
        let all =
            highest.update(|all| std::mem::replace(all, all.iter().copied().max().into_iter().collect()));
        self.outside.lock().unwrap().begun.push((cx.subtask, held.read(Clone::clone), all));
        Ok(())
    }

    async fn begin(&self, transaction: &Transaction<'_>) -> Result<Open, BoxError> {
        let cx = transaction.cx;
        match self.mistake {
            Some(Mistake::AsksLate) => drop(cx.operator_state::<Vec<u64>>("new", Redistribution::Even)?),
            Some(Mistake::AsksForAnotherType) => {
                drop(cx.operator_state::<Vec<String>>("held", Redistribution::Even)?);
            }
            None => {}
        }
        Ok(Open { name: transaction.name(), held: held(cx)?, highest: highest(cx)?, packets: Vec::new() })
    }

    async fn write(&self, open: &mut Open, records: &[u64]) -> Result<(), BoxError> {
        open.held.update(|held| {
            held.extend(records);
            open.packets.extend(held.drain(..held.len() / 10 * 10));
        });
        open.highest.update(|highest| {
            let all = highest.iter().chain(records).copied().max();
            *highest = all.into_iter().collect();
        });
        Ok(())
    }

    async fn pre_commit(&self, open: Open) -> Result<Named, BoxError> {
        self.outside.lock().unwrap().pending.insert(open.name.clone(), open.packets);
        Ok(Named { name: open.name })
    }

    async fn commit(&self, Named { name }: &Named) -> Result<Committed, CommitError> {
        let mut outside = self.outside.lock().unwrap();
        if outside.visible.contains_key(name) {
            return Ok(Committed::Already);
        }
        let packets = outside.pending.remove(name).ok_or_else(|| CommitError::Lost("it is gone".into()))?;
        outside.visible.insert(name.clone(), packets);
        Ok(Committed::Now)
    }

    async fn abort(&self, Named { name }: &Named) -> Result<(), BoxError> {
        self.outside.lock().unwrap().pending.remove(name);
        Ok(())
    }

    async fn recover(&self, _: &SinkContext) -> Result<(), BoxError> {
        self.outside.lock().unwrap().pending.clear();
        Ok(())
    }
}

impl Packets {
    fn visible(&self) -> Vec<u64> {
        self.outside.lock().unwrap().visible.values().flatten().copied().collect()
    }

    /// What the subtasks of the newest attempt began with, in their order.
    fn begun(&self) -> Vec<(usize, Vec<u64>, Vec<u64>)> {
        let mut begun = std::mem::take(&mut self.outside.lock().unwrap().begun);
        begun.sort();
        begun
    }
}

#[pipeline]
fn packed(numbers: Input<u64>, packets: Packets) {
    source(numbers).rebalance().sink(packets);
}

#[test]
fn what_a_sink_remembers_is_dealt_out_anew_and_neither_lost_nor_there_twice() -> Result<(), Error> {
    let mut test = Harness::new();
    let (input, packets) = (test.input(), Packets::default());
    let job = || packed(input.clone(), packets.clone());
    let (mut pushed, mut before) = (0, 1);
    test.start(job())?;
    for (parallelism, more) in [(3, 25), (3, 0), (2, 44), (4, 0), (1, 3), (2, 101)] {
        test.settle()?;
        drop(packets.begun());
        input.push_all(pushed..pushed + more);
        pushed += more;
        let snapshot = test.snapshot()?;
        // What comes after it is taken back, with what the sink remembered of it.
        input.push_all([]);
        test.parallelism(parallelism).restore(&snapshot, job())?;
        test.settle()?;

        let begun = packets.begun();
        assert_eq!(begun.len(), parallelism);
        let held: Vec<u64> = begun.iter().flat_map(|(_, held, _)| held).copied().collect();
        let mut all = packets.visible();
        assert_eq!(all.len() % 10, 0);
        all.extend(&held);
        all.sort_unstable();
        assert_eq!(all, (0..pushed).collect::<Vec<_>>(), "from {before} to {parallelism}");
        if before != parallelism {
            let share = held.len() / parallelism;
            assert!(begun.iter().all(|(_, held, _)| (share..=share + 1).contains(&held.len())), "{begun:?}");
        }
        // All know what all knew.
        assert!(begun.iter().all(|(.., highest)| *highest == begun[0].2 && highest.len() == before));
        assert_eq!(begun[0].2.iter().max(), pushed.checked_sub(1).as_ref());
        before = parallelism;
    }
    test.finish()?;
    Ok(())
}

#[test]
fn what_comes_after_the_checkpoint_is_forgotten_with_it() -> Result<(), Error> {
    let mut test = Harness::new();
    let (input, packets) = (test.input(), Packets::default());
    let job = || packed(input.clone(), packets.clone());
    test.start(job())?;
    input.push_all(0..7);
    test.settle()?;
    let snapshot = test.snapshot()?;
    input.push_all(7..14);
    test.settle()?;
    assert_eq!(packets.visible(), (0..10).collect::<Vec<_>>());
    packets.outside.lock().unwrap().visible.clear();
    drop(packets.begun());
    test.restore(&snapshot, job())?;
    test.settle()?;
    assert_eq!(packets.begun(), [(0, (0..7).collect(), vec![6])]);
    assert_eq!(packets.visible(), (0..10).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_state_that_a_checkpoint_would_miss_is_refused() -> Result<(), Error> {
    for (mistake, why) in [
        (Mistake::AsksLate, "the state `new` of subtask 0 of `sink` has to be asked for when the sink"),
        (
            Mistake::AsksForAnotherType,
            "the state `held` of subtask 0 of `sink` was asked for as another type",
        ),
    ] {
        let mut test = Harness::new();
        let (input, packets) = (test.input(), Packets { mistake: Some(mistake), ..Packets::default() });
        test.start(packed(input.clone(), packets))?;
        input.push(1);
        let error = test.settle().expect_err("it cannot be kept").to_string();
        assert!(error.contains(why), "{error}");
    }
    Ok(())
}
