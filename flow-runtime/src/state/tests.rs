//! Snapshots of a table that goes on changing, against a map that is copied.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use proptest::prelude::*;

use super::{KeyGroups, Keyed, Left, port::Snapshot, port::StatePort};
use crate::checkpoint::merge_segments;

type Map = BTreeMap<String, u64>;

fn groups(parallelism: u32) -> KeyGroups {
    KeyGroups { max_parallelism: 128, parallelism }
}

/// What the subtasks of a job at this parallelism restore.
fn restored(segments: &[Bytes], parallelism: u32) -> Vec<Keyed<String, u64>> {
    let subtask = |subtask| {
        let keyed = Keyed::empty();
        for segment in segments {
            keyed.restore(segment, groups(parallelism), subtask as usize).unwrap();
        }
        keyed
    };
    (0..parallelism).map(subtask).collect()
}

fn content(tables: &[Keyed<String, u64>]) -> Map {
    let mut map = Map::new();
    for table in tables {
        for (mut key, value) in table.borrow_mut().results() {
            assert_eq!(map.insert(key.lend(), value), None, "a key in two subtasks");
        }
    }
    map
}

fn put(keyed: &Keyed<String, u64>, key: u64, value: u64) {
    *keyed.borrow_mut().value(&format!("key {key}"), || 0) = value;
}

#[derive(Clone, Debug)]
enum Step {
    Put {
        key: u64,
        value: u64,
    },
    Remove {
        key: u64,
    },
    /// New keys, so that shards grow.
    Fill {
        from: u64,
        keys: u64,
    },
    Clear {
        from: u64,
        keys: u64,
    },
    Barrier,
    /// Collects for a moment.
    Slice,
    /// Merges the first segments.
    Merge {
        segments: usize,
    },
    /// What could not be written is merged among itself.
    MergeLast {
        segments: usize,
    },
    /// Changes were lost: the next snapshot is a whole one.
    Whole,
    /// The job goes on from what is stored, adding to the files or not.
    Restore {
        continues: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (0u64..40, any::<u64>()).prop_map(|(key, value)| Step::Put { key, value }),
        10 => (0u64..40).prop_map(|key| Step::Remove { key }),
        3 => (0u64..3000, 0u64..3000).prop_map(|(from, keys)| Step::Fill { from, keys }),
        1 => (0u64..3000, 0u64..2000).prop_map(|(from, keys)| Step::Clear { from, keys }),
        8 => Just(Step::Barrier),
        20 => Just(Step::Slice),
        3 => (1usize..6).prop_map(|segments| Step::Merge { segments }),
        1 => (1usize..4).prop_map(|segments| Step::MergeLast { segments }),
        1 => Just(Step::Whole),
        1 => any::<bool>().prop_map(|continues| Step::Restore { continues }),
    ]
}

/// A table, and beside it the map that it should be.
struct Pair {
    keyed: Keyed<String, u64>,
    map: Map,
    /// The snapshot that is being collected, and what the map was at the barrier.
    open: Option<(Option<Snapshot>, Map)>,
    /// What is stored, and what it should be.
    segments: Vec<Bytes>,
    stored: Map,
}

impl Pair {
    fn barrier(&mut self) {
        let snapshot = self.keyed.close(groups(1));
        // A snapshot that is still open was completed by this.
        self.completed();
        self.open = Some((snapshot, self.map.clone()));
    }

    fn slice(&mut self) {
        if self.keyed.collect(Instant::now()).is_nothing() {
            self.completed();
        }
    }

    /// All has been collected.
    fn completed(&mut self) {
        let Some((snapshot, map)) = self.open.take() else { return };
        if let Some(Snapshot { whole, encode }) = snapshot {
            let segment = encode().unwrap();
            if whole {
                self.segments.clear();
            }
            self.segments.push(segment);
        }
        self.stored = map;
        for parallelism in [1, 3] {
            assert_eq!(content(&restored(&self.segments, parallelism)), self.stored);
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Put { key, value } => {
                put(&self.keyed, key, value);
                self.map.insert(format!("key {key}"), value);
            }
            Step::Remove { key } => self.remove(key),
            Step::Fill { from, keys } => {
                for key in from..from + keys {
                    put(&self.keyed, key, from);
                    self.map.insert(format!("key {key}"), from);
                }
            }
            Step::Clear { from, keys } => (from..from + keys).for_each(|key| self.remove(key)),
            Step::Barrier => self.barrier(),
            Step::Slice => self.slice(),
            Step::Merge { segments } => {
                let n = segments.min(self.segments.len());
                let merged = merge_segments::<String>(&self.segments[..n], true).unwrap();
                self.segments.splice(..n, [merged]);
            }
            Step::MergeLast { segments } => {
                let from = self.segments.len().saturating_sub(segments).max(1).min(self.segments.len());
                let merged = merge_segments::<String>(&self.segments[from..], false).unwrap();
                self.segments.splice(from.., [merged]);
            }
            Step::Whole => self.keyed.set_whole(true),
            Step::Restore { continues } => {
                self.open = None;
                if let Some(restored) = restored(&self.segments, 1).pop() {
                    restored.set_whole(!continues || self.segments.is_empty());
                    self.keyed = restored;
                }
                self.map = self.stored.clone();
            }
        }
    }

    fn remove(&mut self, key: u64) {
        let key = format!("key {key}");
        assert_eq!(self.keyed.borrow_mut().remove(&key), self.map.remove(&key));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever happens while a snapshot is collected, it is the state at its barrier.
    #[test]
    fn a_snapshot_is_the_state_at_its_barrier(steps in proptest::collection::vec(step(), 1..150)) {
        let (segments, stored) = (Vec::new(), Map::new());
        let mut pair = Pair { keyed: Keyed::empty(), map: Map::new(), open: None, segments, stored };
        // A first one, as every job takes it.
        pair.barrier();
        for step in steps {
            pair.apply(step);
        }
        pair.barrier();
        while pair.open.is_some() {
            pair.slice();
        }
        assert_eq!(pair.stored, pair.map);
        assert_eq!(content(&[pair.keyed]), pair.map);
    }
}

/// The length of the next snapshot, and whether it is a whole one.
fn next(keyed: &Keyed<String, u64>) -> Option<(bool, usize)> {
    let Snapshot { whole, encode } = keyed.close(groups(1))?;
    while !keyed.collect(Instant::now()).is_nothing() {}
    Some((whole, encode().unwrap().len()))
}

#[test]
fn a_snapshot_is_as_long_as_what_has_changed() {
    let keyed = Keyed::<String, u64>::empty();
    (0..10_000).for_each(|key| put(&keyed, key, 1));
    let (whole, all) = next(&keyed).unwrap();
    assert!(whole);
    assert!(next(&keyed).is_none(), "nothing has changed");
    (0..10).for_each(|key| put(&keyed, key, 2));
    let (whole, ten) = next(&keyed).unwrap();
    assert!(!whole && ten < all / 100, "{ten} of {all} bytes");
    for key in 0..10 {
        keyed.borrow_mut().remove(&format!("key {key}"));
    }
    let (whole, ten) = next(&keyed).unwrap();
    assert!(!whole && ten < all / 100, "{ten} of {all} bytes");
    // As good as all.
    (0..6000).for_each(|key| put(&keyed, key, 3));
    assert!(next(&keyed).unwrap().0);
}

/// Where most of the state changes from barrier to barrier no bits are kept, until the sample shows that it is over.
#[test]
fn changes_are_followed_again_when_they_become_few() {
    let keyed = Keyed::<String, u64>::empty();
    let change = |keys: u64| (0..keys).for_each(|key| put(&keyed, key, 1));
    for _ in 0..4 {
        change(10_000);
        assert!(next(&keyed).unwrap().0);
    }
    change(10);
    assert!(next(&keyed).unwrap().0, "what has changed is not known");
    change(10);
    let (whole, ten) = next(&keyed).unwrap();
    assert!(!whole && ten < 1000, "{ten} bytes");
    assert!(next(&keyed).is_none());
}

#[test]
fn what_comes_and_goes_within_an_epoch_leaves_no_trace() {
    let keyed = Keyed::<String, u64>::empty();
    (0..100).for_each(|key| put(&keyed, key, 1));
    next(&keyed);
    for key in 1000..2000 {
        put(&keyed, key, 1);
        keyed.borrow_mut().remove(&format!("key {key}"));
    }
    assert_eq!(next(&keyed), None);
}

#[test]
fn a_minimum_that_stays_has_not_changed() {
    let keyed = Keyed::<String, u64>::empty();
    for value in [5, 3] {
        keyed.borrow_mut().keep_min("a".to_owned(), value).unwrap();
        assert!(next(&keyed).is_some());
    }
    keyed.borrow_mut().keep_min("a".to_owned(), 4).unwrap();
    assert_eq!(next(&keyed), None);
}

#[test]
fn results_leave_an_empty_state() {
    let keyed = Keyed::<String, u64>::empty();
    (0..100).for_each(|key| put(&keyed, key, 1));
    let Snapshot { encode, .. } = keyed.close(groups(1)).unwrap();
    assert_eq!(keyed.borrow_mut().results().count(), 100);
    let hundred = encode().unwrap();
    assert_eq!(content(&restored(&[hundred], 2)).len(), 100, "as at the barrier");
    let Snapshot { whole, encode } = keyed.close(groups(1)).unwrap();
    while !keyed.collect(Instant::now()).is_nothing() {}
    assert!(whole && content(&restored(&[encode().unwrap()], 2)).is_empty());
}

#[test]
fn a_snapshot_that_is_not_collected_to_its_end_is_none() {
    let keyed = Keyed::<String, u64>::empty();
    (0..1000).for_each(|key| put(&keyed, key, 1));
    let Snapshot { encode, .. } = keyed.close(groups(1)).unwrap();
    assert_eq!(keyed.collect(Instant::now()), Left::Some);
    drop(keyed);
    assert!(encode().is_err());
}

#[test]
fn no_more_is_copied_than_can_be_encoded() {
    let keyed = Keyed::<String, u64>::empty();
    (0..400_000).for_each(|key| put(&keyed, key, 1));
    let Snapshot { encode, .. } = keyed.close(groups(1)).unwrap();
    let far = Instant::now() + Duration::from_secs(3600);
    assert_eq!(keyed.collect(far), Left::Unread, "nobody encodes");
    assert_eq!(keyed.collect(far), Left::Unread);
    let encoding = std::thread::spawn(encode);
    while !keyed.collect(far).is_nothing() {
        std::thread::yield_now();
    }
    let all = encoding.join().unwrap().unwrap();
    assert_eq!(content(&restored(&[all], 1)).len(), 400_000);
    (0..400_000).for_each(|key| put(&keyed, key, 1));
    let Snapshot { encode, .. } = keyed.close(groups(1)).unwrap();
    assert_eq!(keyed.collect(far), Left::Unread);
    drop(encode);
    assert!(keyed.collect(far).is_nothing(), "nobody wants it any more");
}
