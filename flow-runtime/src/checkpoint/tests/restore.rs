use std::fs;

use crate::checkpoint::{
    CheckpointError, Choice, Damage, Found, Restore, RestoreRequest, Resumed, Wanted, choose, tests::*,
};

const NONE: CheckpointId = CheckpointId(0);

/// Checkpoints of these numbers, newest first; a negative one is damaged.
fn found(ids: &[i64]) -> Found {
    let one = |id: &i64| {
        let number = CheckpointId(id.unsigned_abs());
        let manifest = match *id > 0 {
            true => Ok(Manifest::new("job", number, 128)),
            false => Err(CheckpointError::damaged(format!("chk-{number}/manifest"), Damage::Checksum)),
        };
        (number, manifest)
    };
    ids.iter().map(one).collect()
}

fn chosen(ids: &[i64], wanted: Wanted, allow_older: bool) -> Result<Option<u64>, CheckpointError> {
    choose(&found(ids), wanted, allow_older, "dir").map(|c| c.manifest.map(|m| m.id.0))
}

#[test]
fn the_newest_is_chosen() {
    let newest = Wanted::NewestAfter(NONE);
    assert_eq!(chosen(&[], newest, false).unwrap(), None);
    assert_eq!(chosen(&[7, 5, -3], newest, false).unwrap(), Some(7));
    assert_eq!(chosen(&[7, 5], Wanted::NewestAfter(CheckpointId(7)), false).unwrap(), None);
    assert_eq!(chosen(&[7, 5], Wanted::Newest, false).unwrap(), Some(7));
    assert!(matches!(chosen(&[], Wanted::Newest, false), Err(CheckpointError::NoneFound { .. })));
}

#[test]
fn a_damaged_newest_is_not_passed_over_in_silence() {
    let error = chosen(&[-7, 5], Wanted::NewestAfter(NONE), false).unwrap_err();
    assert!(!error.restartable());
    let text = error.to_string();
    for part in ["newest checkpoint, 7,", "chk-7/manifest", "checksum", "--allow-older-checkpoint"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let Choice { manifest, note } =
        choose(&found(&[-7, -6, 5, 4]), Wanted::NewestAfter(NONE), true, "dir").unwrap();
    assert_eq!(manifest.unwrap().id, CheckpointId(5));
    let note = note.unwrap();
    assert!(note.contains("checkpoint 5") && note.contains("7") && note.contains("checksum"), "{note}");
}

#[test]
fn with_all_damaged_the_job_does_not_begin_anew_in_silence() {
    let error = chosen(&[-7, -5], Wanted::NewestAfter(NONE), true).unwrap_err();
    assert!(matches!(error, CheckpointError::AllUnusable { count: 2, .. }));
    assert!(error.to_string().contains("--fresh"), "{error}");
}

#[test]
fn a_named_one_is_taken_or_refused() {
    let exactly = |id| Wanted::Exactly(CheckpointId(id));
    assert_eq!(chosen(&[-7, 5, 4], exactly(4), false).unwrap(), Some(4));
    let error = chosen(&[-7, 5, 4], exactly(7), true).unwrap_err().to_string();
    assert!(error.contains("checkpoint 7 in `dir` cannot be used"), "{error}");
    let error = chosen(&[-7, 5, 4], exactly(6), true).unwrap_err().to_string();
    assert!(error.contains("no checkpoint 6 in `dir`; choose one of 5, 4"), "{error}");
    assert!(chosen(&[], exactly(6), true).unwrap_err().to_string().contains("look at the path"));
}

async fn resume(restore: &mut Restore, store: &Store) -> (Option<u64>, u64) {
    let Resumed { restored, last, .. } = restore.resume(store, |_| Ok(())).await.unwrap();
    (restored.map(|r| r.manifest.id.0), last.0)
}

#[tokio::test]
async fn a_first_start_has_nothing_to_resume() {
    let mut restore = Restore::new(RestoreRequest::Newest, false);
    assert_eq!(resume(&mut restore, &Store::in_memory()).await, (None, 0));
}

#[tokio::test]
async fn a_fresh_run_goes_on_counting_and_never_falls_back_to_the_old_one() {
    let store = Store::in_memory();
    complete(&store, 6).await;
    complete(&store, 7).await;
    let mut restore = Restore::new(RestoreRequest::Fresh, false);
    assert_eq!(resume(&mut restore, &store).await, (None, 7));
    // A crash before its first checkpoint.
    assert_eq!(resume(&mut restore, &store).await, (None, 7));
    complete(&store, 8).await;
    assert_eq!(resume(&mut restore, &store).await, (Some(8), 8));
}

#[tokio::test]
async fn a_run_from_elsewhere_resumes_its_own_once_it_has_one() {
    let (dir, savepoints) = directory();
    complete(&savepoints, 3).await;
    complete(&savepoints, 9).await;
    for (from, id, last) in [("", 9, 9), ("/chk-3", 3, 5), ("/chk-0000000003/manifest", 3, 5)] {
        let store = Store::in_memory();
        complete(&store, 5).await;
        let from = RestoreRequest::From(format!("{}{from}", dir.path().display()));
        let mut restore = Restore::new(from, false);
        for _ in 0..2 {
            assert_eq!(resume(&mut restore, &store).await, (Some(id), last));
        }
        complete(&store, last + 1).await;
        assert_eq!(resume(&mut restore, &store).await, (Some(last + 1), last + 1));
    }
}

#[tokio::test]
async fn a_store_that_was_emptied_under_the_job_is_no_first_start() {
    let (dir, store) = directory();
    complete(&store, 1).await;
    let mut restore = Restore::new(RestoreRequest::Newest, false);
    assert_eq!(resume(&mut restore, &store).await, (Some(1), 1));
    fs::remove_dir_all(dir.path().join("chk-0000000001")).unwrap();
    let error = restore.resume(&store, |_| Ok(())).await.unwrap_err();
    assert!(matches!(error, CheckpointError::NotFound { .. }), "{error}");
    fs::remove_dir_all(dir.path()).unwrap();
    let error = restore.resume(&store, |_| Ok(())).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }), "{error}");
}

#[tokio::test]
async fn a_damaged_part_counts_like_a_damaged_manifest() {
    let (dir, store) = directory();
    complete(&store, 1).await;
    complete(&store, 2).await;
    let part = file_like(&dir.path().join("chk-0000000002"), "sum");
    fs::write(&part, &fs::read(&part).unwrap()[..25]).unwrap();

    let error = Restore::new(RestoreRequest::Newest, false).resume(&store, |_| Ok(())).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, CheckpointError::NewestUnusable { id: CheckpointId(2), .. }), "{text}");
    assert!(text.contains("words.sum-0") && text.contains("truncated"), "{text}");

    let mut restore = Restore::new(RestoreRequest::Newest, true);
    let resumed = restore.resume(&store, |_| Ok(())).await.unwrap();
    assert_eq!(resumed.restored.unwrap().manifest.id, CheckpointId(1));
    // The number of the damaged one is not used again.
    assert_eq!(resumed.last, CheckpointId(2));
    assert!(resumed.note.unwrap().contains("truncated"));
}

#[tokio::test]
async fn a_foreign_checkpoint_is_refused_before_its_parts_are_read() {
    let (dir, store) = directory();
    complete(&store, 1).await;
    fs::remove_file(file_like(dir.path(), "sum")).unwrap();
    let mut restore = Restore::new(RestoreRequest::Newest, true);
    let error = restore.resume(&store, |m| m.check("other", &[], 128, false)).await.unwrap_err();
    assert!(matches!(error, CheckpointError::OtherJob { .. }), "{error}");
}

#[tokio::test]
async fn handles_come_in_the_order_of_their_checkpoints() {
    let store = Store::in_memory();
    let mut manifest = Manifest::new("job", CheckpointId(3), 128);
    for (subtask, checkpoint) in [(1, 3), (0, 3), (1, 2), (0, 1)] {
        let checkpoint = CheckpointId(checkpoint);
        let bytes = Bytes::from(format!("{checkpoint}/{subtask}"));
        let file = store.put_part(checkpoint, "out", bytes).await.unwrap();
        manifest.sinks.push(SinkPart { uid: "out".into(), subtask, checkpoint, file });
    }
    store.put_manifest(&manifest).await.unwrap();
    let mut restore = Restore::new(RestoreRequest::Newest, false);
    let restored = restore.resume(&store, |_| Ok(())).await.unwrap().restored.unwrap();
    let handles: Vec<_> = restored.handles("out").into_iter().map(|(.., bytes)| bytes).collect();
    assert_eq!(handles, ["1/0", "2/1", "3/0", "3/1"]);
}
