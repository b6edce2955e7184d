//! Tests of this folder, one file per file.

mod damage;
mod decide;
mod fingerprint;
mod location;
mod log;
mod protocol;
mod publish;
mod restore;
mod retain;
mod snapshot;
mod store;
mod types;

use bytes::Bytes;

use super::{CheckpointId, Manifest, OperatorEntry, SinkPart, SourcePart, SplitState, StatePart, Store};

fn operator(uid: &str, kind: &str) -> OperatorEntry {
    OperatorEntry { uid: uid.into(), kind: kind.into(), parallelism: 1 }
}

/// A completed checkpoint with a source, a state part and a sink part.
async fn complete(store: &Store, id: u64) -> Manifest {
    let id = CheckpointId(id);
    let mut manifest = Manifest::new("job", id, 128);
    manifest.operators =
        vec![operator("lines", "source"), operator("words.sum", "sum"), operator("out", "sink")];
    let split = SplitState { id: "a.txt".into(), position: "byte 17".into(), data: vec![0, 17, 255] };
    manifest.sources.push(SourcePart { uid: "lines".into(), subtask: 0, splits: vec![split] });
    let file = store.put_part(id, "words.sum-0", Bytes::from(format!("state {id}"))).await.unwrap();
    manifest.states.push(StatePart { uid: "words.sum".into(), subtask: 0, files: vec![file] });
    let file = store.put_part(id, "out-0", Bytes::from(format!("handle {id}"))).await.unwrap();
    manifest.sinks.push(SinkPart { uid: "out".into(), subtask: 0, checkpoint: id, file });
    store.put_manifest(&manifest).await.unwrap();
    manifest
}

/// A directory store, and the directory.
fn directory() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().to_str().unwrap()).unwrap();
    (dir, store)
}

/// The one file in `dir` and below whose name contains `part`.
fn file_like(dir: &std::path::Path, part: &str) -> std::path::PathBuf {
    let pattern = format!("{}/**/*{part}*", dir.display());
    let found: Vec<_> = glob::glob(&pattern).unwrap().map(Result::unwrap).filter(|p| p.is_file()).collect();
    assert_eq!(found.len(), 1, "{part}: {found:?}");
    found[0].clone()
}
