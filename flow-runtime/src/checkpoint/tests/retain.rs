use std::{
    fmt, fs,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};
use proptest::prelude::*;

use crate::checkpoint::{Restored, tests::*};

fn names(dir: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn older_checkpoints_go_with_their_folders() {
    let (dir, store) = directory();
    for id in 1..=5 {
        complete(&store, id).await;
    }
    store.retain(2).await.unwrap();
    assert_eq!(names(dir.path()), ["chk-0000000004", "chk-0000000005"]);
    store.retain(0).await.unwrap();
    assert_eq!(names(dir.path()), ["chk-0000000005"]);
    for (_, manifest) in store.manifests().await.unwrap() {
        Restored::load(&store, manifest.unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn parts_that_a_newer_checkpoint_names_stay() {
    let (dir, store) = directory();
    let first = complete(&store, 1).await;
    let mut second = Manifest::new("job", CheckpointId(2), 128);
    second.sinks = first.sinks.clone();
    store.put_manifest(&second).await.unwrap();
    store.retain(1).await.unwrap();
    assert_eq!(names(&dir.path().join("chk-0000000001")).len(), 1);
    let restored = Restored::load(&store, second).await.unwrap();
    assert_eq!(restored.handles("out"), [(0, CheckpointId(1), Bytes::from("handle 1"))]);
    // Once nobody names it any more, it goes too.
    complete(&store, 3).await;
    store.retain(1).await.unwrap();
    assert_eq!(names(dir.path()), ["chk-0000000003"]);
}

#[tokio::test]
async fn all_go_when_nobody_will_resume() {
    let (dir, store) = directory();
    for id in 1..=3 {
        complete(&store, id).await;
    }
    store.put_part(CheckpointId(7), "x", Bytes::from_static(b"x")).await.unwrap();
    fs::write(dir.path().join("notes.txt"), "not ours").unwrap();
    fs::write(dir.path().join("chk-0000000002/notes.txt"), "not ours").unwrap();
    store.delete_checkpoints().await.unwrap();
    assert_eq!(names(dir.path()), ["chk-0000000002", "notes.txt"]);
    assert_eq!(names(&dir.path().join("chk-0000000002")), ["notes.txt"]);
    assert!(store.manifests().await.unwrap().is_empty());
    store.delete_checkpoints().await.unwrap();
}

#[tokio::test]
async fn what_never_completed_goes_and_what_is_in_progress_stays() {
    let (dir, store) = directory();
    complete(&store, 1).await;
    let put = async |id| store.put_part(CheckpointId(id), "x", Bytes::from_static(b"x")).await.unwrap();
    let (failed, orphan, progress) = (put(2).await, put(3).await, put(4).await);
    complete(&store, 3).await;
    let unfinished = dir.path().join("chk-0000000003/manifest#1");
    fs::write(&unfinished, "cut off").unwrap();
    fs::write(dir.path().join("chk-0000000004/y.part#2"), "being written").unwrap();
    store.retain(10).await.unwrap();
    assert_eq!(names(dir.path()), ["chk-0000000001", "chk-0000000003", "chk-0000000004"]);
    assert!(store.get_part(&failed).await.is_err() && store.get_part(&orphan).await.is_err());
    assert!(!unfinished.exists());
    store.get_part(&progress).await.unwrap();
    assert_eq!(names(&dir.path().join("chk-0000000004")).len(), 2);
}

#[tokio::test]
async fn without_a_sound_checkpoint_nothing_goes() {
    let (dir, store) = directory();
    store.put_part(CheckpointId(1), "x", Bytes::new()).await.unwrap();
    store.retain(1).await.unwrap();
    assert_eq!(names(dir.path()).len(), 1);
    complete(&store, 2).await;
    fs::write(dir.path().join("chk-0000000002/manifest"), "damaged").unwrap();
    store.retain(1).await.unwrap();
    assert_eq!(names(&dir.path().join("chk-0000000002")).len(), 3);
}

#[tokio::test]
async fn a_damaged_checkpoint_stays_until_it_is_old() {
    let (dir, store) = directory();
    for id in 1..=4 {
        complete(&store, id).await;
    }
    fs::write(dir.path().join("chk-0000000003/manifest"), "damaged").unwrap();
    store.retain(2).await.unwrap();
    assert_eq!(names(dir.path()), ["chk-0000000002", "chk-0000000003", "chk-0000000004"]);
    assert_eq!(names(&dir.path().join("chk-0000000003")).len(), 3);
    store.retain(1).await.unwrap();
    assert_eq!(names(dir.path()), ["chk-0000000004"]);
}

/// What happens to a store in the life of a job.
#[derive(Clone, Debug)]
enum Step {
    /// A checkpoint completes; it carries this many of the previous one's pending transactions.
    Complete {
        carried: usize,
    },
    /// An attempt writes a part and dies.
    Abandon,
    Damage,
    Retain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..4).prop_map(|carried| Step::Complete { carried }),
        1 => Just(Step::Abandon),
        1 => Just(Step::Damage),
        2 => (0usize..4).prop_map(Step::Retain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However checkpoints refer to each other: those that are kept can be read, there are as many as asked for, and
    /// of the rest nothing is left.
    #[test]
    fn the_kept_ones_are_whole(steps in proptest::collection::vec(step(), 1..14), memory in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (dir, store) = directory();
            let store = if memory { Store::in_memory() } else { store };
            let (mut id, mut last) = (CheckpointId(0), None::<Manifest>);
            for step in steps {
                match step {
                    Step::Complete { carried } => {
                        id = id.next();
                        let mut manifest = Manifest::new("job", id, 128);
                        let pending = last.iter().flat_map(|m| m.sinks.iter().rev()).take(carried).cloned();
                        manifest.sinks = pending.collect();
                        let file = store.put_part(id, "out-0", Bytes::from(format!("{id}"))).await.unwrap();
                        manifest.sinks.push(SinkPart { uid: "out".into(), subtask: 0, checkpoint: id, file });
                        store.put_manifest(&manifest).await.unwrap();
                        last = Some(manifest);
                    }
                    Step::Abandon => {
                        id = id.next();
                        store.put_part(id, "out-0", Bytes::new()).await.unwrap();
                    }
                    // The newest of those that are there, on disk only.
                    Step::Damage if !memory => {
                        if let Some((id, _)) = store.manifests().await.unwrap().first() {
                            let file = dir.path().join(format!("chk-{:010}/manifest", id.0));
                            fs::write(file, "damaged").unwrap();
                        }
                    }
                    Step::Damage => {}
                    Step::Retain(keep) => {
                        let good = |found: Vec<(_, Result<Manifest, _>)>| -> Vec<Manifest> {
                            found.into_iter().filter_map(|(_, m)| m.ok()).collect()
                        };
                        let mut before = good(store.manifests().await.unwrap());
                        store.retain(keep).await.unwrap();
                        let after = good(store.manifests().await.unwrap());
                        before.truncate(keep.max(1));
                        prop_assert_eq!(&after, &before);
                        for manifest in after {
                            Restored::load(&store, manifest).await.unwrap();
                        }
                    }
                }
            }
            Ok(())
        })?;
    }
}

type Happening = Box<dyn FnOnce(&InMemory) + Send>;

/// Storage in which something happens when a folder is about to be listed.
struct Meanwhile {
    objects: InMemory,
    folder: &'static str,
    happens: Mutex<Option<Happening>>,
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl fmt::Display for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

#[async_trait]
impl ObjectStore for Meanwhile {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.objects.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.objects.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        if prefix.is_some_and(|prefix| prefix.as_ref().ends_with(self.folder))
            && let Some(happens) = self.happens.lock().unwrap().take()
        {
            happens(&self.objects);
        }
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

/// The background may write a merged base into the folder of a complete checkpoint while that is being tidied. It will
/// be named by the next manifest.
#[tokio::test]
async fn a_part_that_is_written_while_folders_are_listed_stays() {
    let objects =
        Arc::new(Meanwhile { objects: InMemory::new(), folder: "chk-0000000001", happens: Mutex::new(None) });
    let store = Store::over(Arc::clone(&objects) as Arc<dyn ObjectStore>, "a place that changes");
    complete(&store, 1).await;
    complete(&store, 2).await;
    // As the log of a state does: first held, then written.
    let (merged, left_over) = ("chk-0000000001/words.sum-0-9.part", "chk-0000000001/words.sum-0-8.part");
    let other = store.clone();
    *objects.happens.lock().unwrap() = Some(Box::new(move |objects: &InMemory| {
        other.inner.held.hold(merged);
        for path in [merged, left_over] {
            let path = Path::from(path);
            let put = objects.put_opts(&path, "base".into(), PutOptions::default());
            futures_util::FutureExt::now_or_never(put).expect("memory is at hand").unwrap();
        }
    }));
    store.retain(1).await.unwrap();
    assert!(objects.happens.lock().unwrap().is_none(), "it happened while folders were listed");
    let there = async |path| objects.objects.get_opts(&Path::from(path), GetOptions::default()).await.is_ok();
    assert!(there(merged).await, "what will be named was deleted");
    assert!(!there(left_over).await, "what nobody holds goes");
}
