use std::{collections::BTreeMap, fs, path::Path, time::Instant};

use proptest::prelude::*;

use crate::{
    checkpoint::{Compression, NewSegment, PartFile, Restored, StateLog, merge_segments, tests::*},
    state::{KeyGroups, Keyed, StatePort},
    worker::Tries,
};

const GROUPS: KeyGroups = KeyGroups { max_parallelism: 128, parallelism: 1 };

type Map = BTreeMap<u64, u64>;

/// A subtask with its log.
struct Subtask {
    keyed: Keyed<u64, u64>,
    log: StateLog,
}

impl Subtask {
    fn start(store: &Store, files: Vec<PartFile>) -> Self {
        let keyed = Keyed::empty();
        keyed.set_whole(files.is_empty());
        let (tokio, place) = (tokio::runtime::Handle::current(), (store.clone(), Compression::Zstd));
        let log = StateLog::start(&tokio, place, "s-0".into(), merge_segments::<u64>, files);
        Subtask { keyed, log }
    }

    fn put(&self, key: u64, value: u64) {
        *self.keyed.borrow_mut().value(&key, || 0) = value;
    }

    /// A checkpoint's part; an error when the store refuses it.
    async fn part(&self, id: CheckpointId) -> Result<StatePart, crate::checkpoint::CheckpointError> {
        if self.log.broken() {
            self.keyed.set_whole(true);
        }
        let segment = self.keyed.close(GROUPS).map(|snapshot| NewSegment {
            whole: snapshot.whole,
            encoded: tokio::task::spawn_blocking(snapshot.encode),
        });
        let part = self.log.append(id, segment, Tries::of(false));
        while !self.keyed.collect(Instant::now()).is_nothing() {}
        Ok(StatePart { uid: "s".into(), subtask: 0, files: part.await? })
    }

    /// Completes a checkpoint, and returns how many files it names.
    async fn complete(&self, store: &Store, id: u64) -> usize {
        let part = self.part(CheckpointId(id)).await.unwrap();
        let files = part.files.len();
        publish(store, id, part).await;
        files
    }
}

async fn publish(store: &Store, id: u64, part: StatePart) -> Manifest {
    let mut manifest = Manifest::new("job", CheckpointId(id), 128);
    manifest.states.push(part);
    store.put_manifest(&manifest).await.unwrap();
    manifest
}

async fn content(store: &Store, manifest: Manifest) -> Map {
    let restored = Restored::load(store, manifest).await.unwrap();
    let keyed = Keyed::<u64, u64>::empty();
    for segment in restored.states("s") {
        keyed.restore(segment, GROUPS, 0).unwrap();
    }
    keyed.borrow_mut().results().map(|(mut key, value)| (key.lend(), value)).collect()
}

/// The store cannot write the parts of this checkpoint: where its folder should be lies a file.
fn refuse(dir: &Path, id: u64) -> std::path::PathBuf {
    let path = dir.join(format!("chk-{id:010}"));
    fs::write(&path, "in the way").unwrap();
    path
}

#[tokio::test]
async fn a_checkpoint_writes_what_has_changed_and_names_the_rest() {
    let (_dir, store) = directory();
    let subtask = Subtask::start(&store, Vec::new());
    (0..1000).for_each(|key| subtask.put(key, key));
    assert_eq!(subtask.complete(&store, 1).await, 1);
    subtask.put(1, 0);
    assert_eq!(subtask.complete(&store, 2).await, 2);
    assert_eq!(subtask.complete(&store, 3).await, 2, "nothing has changed");
    // The base is named by all three, however many are kept.
    store.retain(1).await.unwrap();
    let (_, newest) = store.manifests().await.unwrap().remove(0);
    assert_eq!(content(&store, newest.unwrap()).await.len(), 1000);
}

#[tokio::test]
async fn what_a_failed_checkpoint_did_not_write_is_in_the_next() {
    let (dir, store) = directory();
    let subtask = Subtask::start(&store, Vec::new());
    (0..1000).for_each(|key| subtask.put(key, key));
    subtask.complete(&store, 1).await;
    for id in 2..20 {
        refuse(dir.path(), id);
        subtask.put(id, 0);
        assert!(subtask.part(CheckpointId(id)).await.is_err());
    }
    let part = subtask.part(CheckpointId(20)).await.unwrap();
    assert!(part.files.len() < 10, "what had to wait was merged: {} files", part.files.len());
    let manifest = publish(&store, 20, part).await;
    let expected: Map = (0..1000).map(|key| (key, if (2..20).contains(&key) { 0 } else { key })).collect();
    assert_eq!(content(&store, manifest).await, expected);
}

#[tokio::test]
async fn files_are_merged_behind_the_checkpoints_and_retention_lets_them() {
    let (dir, store) = directory();
    let subtask = Subtask::start(&store, Vec::new());
    (0..1000).for_each(|key| subtask.put(key, 0));
    subtask.complete(&store, 1).await;
    let mut most = 0;
    for id in 2..100 {
        (0..200).for_each(|key| subtask.put((id * 200 + key) % 1000, id));
        let files = subtask.complete(&store, id).await;
        most = most.max(files);
        store.retain(1).await.unwrap();
    }
    assert!((3..50).contains(&most), "{most} files");
    // What is left is what the last checkpoint names, and perhaps what has just been merged for the next.
    let parts = glob::glob(&format!("{}/*/*.part", dir.path().display())).unwrap().count();
    assert!(parts <= most + 2, "{parts} files");
}

#[tokio::test]
async fn a_state_that_cannot_be_encoded_is_written_whole_once_it_can() {
    let (_dir, store) = directory();
    let subtask = Subtask::start(&store, Vec::new());
    (0..1000).for_each(|key| subtask.put(key, key));
    subtask.complete(&store, 1).await;
    subtask.put(1, 0);
    let _ = subtask.keyed.close(GROUPS).unwrap();
    while !subtask.keyed.collect(Instant::now()).is_nothing() {}
    let panics = tokio::task::spawn_blocking(|| panic!("a panic of the test"));
    let segment = NewSegment { whole: false, encoded: panics };
    assert!(subtask.log.append(CheckpointId(2), Some(segment), Tries::of(false)).await.is_err());
    assert!(subtask.log.broken());
    let part = subtask.part(CheckpointId(3)).await.unwrap();
    assert!(part.files.len() == 1 && !subtask.log.broken());
    let manifest = publish(&store, 3, part).await;
    assert_eq!(content(&store, manifest).await[&1], 0);
}

#[derive(Clone, Debug)]
enum Step {
    Put {
        from: u64,
        keys: u64,
    },
    Remove {
        from: u64,
        keys: u64,
    },
    Checkpoint,
    /// Its parts cannot be written.
    Refused,
    /// Its parts were written, and no manifest was.
    GivenUp,
    Retain,
    /// The attempt fails, and the next goes on from the newest checkpoint; or the process, so that a new one begins.
    Restart {
        killed: bool,
    },
    /// Lets a compaction come to its end.
    Pause,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u64..300, 0u64..100).prop_map(|(from, keys)| Step::Put { from, keys }),
        2 => (0u64..300, 0u64..50).prop_map(|(from, keys)| Step::Remove { from, keys }),
        5 => Just(Step::Checkpoint),
        1 => Just(Step::Refused),
        1 => Just(Step::GivenUp),
        3 => Just(Step::Retain),
        1 => any::<bool>().prop_map(|killed| Step::Restart { killed }),
        2 => Just(Step::Pause),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// However checkpoints fail, files are merged and old ones deleted: every checkpoint that is kept is whole, and
    /// holds the state at its barrier.
    #[test]
    fn every_kept_checkpoint_is_whole(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        runtime.block_on(async {
            let (dir, mut store) = directory();
            let mut subtask = Subtask::start(&store, Vec::new());
            let (mut map, mut complete, mut id) = (Map::new(), BTreeMap::<u64, Map>::new(), 0);
            for (value, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Put { from, keys } => for key in from..from + keys {
                        subtask.put(key, value as u64);
                        map.insert(key, value as u64);
                    },
                    Step::Remove { from, keys } => for key in from..from + keys {
                        assert_eq!(subtask.keyed.borrow_mut().remove(&key), map.remove(&key));
                    },
                    Step::Checkpoint => {
                        id += 1;
                        let part = subtask.part(CheckpointId(id)).await.unwrap();
                        publish(&store, id, part).await;
                        complete.insert(id, map.clone());
                    }
                    Step::Refused => {
                        id += 1;
                        // Nothing is refused where nothing has to be written.
                        let in_the_way = refuse(dir.path(), id);
                        let _ = subtask.part(CheckpointId(id)).await;
                        fs::remove_file(in_the_way).unwrap();
                    }
                    Step::GivenUp => {
                        id += 1;
                        subtask.part(CheckpointId(id)).await.unwrap();
                    }
                    Step::Retain => store.retain(2).await.unwrap(),
                    Step::Restart { killed } => {
                        let newest = store.manifests().await.unwrap().into_iter().next();
                        let files = newest.map(|(_, manifest)| manifest.unwrap().states[0].files.clone());
                        map = complete.last_key_value().map(|(_, map)| map.clone()).unwrap_or_default();
                        if killed {
                            store = Store::open(dir.path().to_str().unwrap()).unwrap();
                        }
                        store.release_all();
                        let files = files.filter(|_| !killed).unwrap_or_default();
                        subtask = Subtask::start(&store, files.clone());
                        let keyed = &subtask.keyed;
                        if let (false, Some((_, newest))) = (killed, store.manifests().await.unwrap().into_iter().next()) {
                            for segment in Restored::load(&store, newest.unwrap()).await.unwrap().states("s") {
                                keyed.restore(segment, GROUPS, 0).unwrap();
                            }
                        } else {
                            for (&key, &value) in &map {
                                subtask.put(key, value);
                            }
                        }
                    }
                    Step::Pause => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
                }
                for (id, manifest) in store.manifests().await.unwrap() {
                    prop_assert_eq!(content(&store, manifest.unwrap()).await, complete[&id.0].clone());
                }
            }
            Ok(())
        })?;
    }
}
