use std::fs;

use crate::checkpoint::{CheckpointError, tests::*};

fn manifest(job: &str, id: u64) -> Manifest {
    Manifest::new(job, CheckpointId(id), 128)
}

#[tokio::test]
async fn the_second_of_two_attempts_fails() {
    let (_dir, local) = directory();
    for store in [local, Store::in_memory()] {
        let first = manifest("a", 1);
        store.put_manifest(&first).await.unwrap();
        let error = store.put_manifest(&manifest("b", 1)).await.unwrap_err();
        assert!(matches!(error, CheckpointError::Taken { id: CheckpointId(1), .. }), "{error}");
        assert!(!error.restartable());
        // The same again is a retry whose first answer was lost.
        store.put_manifest(&first).await.unwrap();
        assert_eq!(store.manifests().await.unwrap()[0].1.as_ref().unwrap().job, "a");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_racing_attempts_one_wins() {
    let (dir, _) = directory();
    for id in 1..=5 {
        let tries = (0..8).map(|n| {
            // Stores of their own, as in processes of their own.
            let store = Store::open(dir.path().to_str().unwrap()).unwrap();
            tokio::spawn(async move { store.put_manifest(&manifest(&format!("run {n}"), id)).await })
        });
        let tries: Vec<_> = tries.collect();
        let mut won = Vec::new();
        for (n, task) in tries.into_iter().enumerate() {
            match task.await.unwrap() {
                Ok(()) => won.push(n),
                Err(e) => assert!(matches!(e, CheckpointError::Taken { .. }), "{e}"),
            }
        }
        assert_eq!(won.len(), 1);
        let store = Store::open(dir.path().to_str().unwrap()).unwrap();
        let newest = store.manifests().await.unwrap().remove(0).1.unwrap();
        assert_eq!((newest.id.0, newest.job), (id, format!("run {}", won[0])));
    }
}

/// An attempt that is being stopped may be writing its manifest just now: either the next attempt sees it, or it
/// never appears.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_write_does_not_appear_after_a_look() {
    let (_dir, store) = directory();
    for id in 1..=40 {
        let racing = {
            let store = store.clone();
            tokio::spawn(async move { store.put_manifest(&manifest("job", id)).await })
        };
        tokio::time::sleep(std::time::Duration::from_micros(id * 20)).await;
        racing.abort();
        let _ = racing.await;
        let before = store.manifests().await.unwrap().len();
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        assert_eq!(store.manifests().await.unwrap().len(), before, "checkpoint {id} appeared late");
    }
}

#[tokio::test]
async fn foreign_files_are_ignored() {
    let (dir, store) = directory();
    let expected = complete(&store, 3).await;
    for file in ["README", "chk-3", "chk-0000000009", "manifest", "chk-0000000003/notes.txt"] {
        fs::write(dir.path().join(file), "not ours").unwrap();
    }
    for folder in
        ["chk-0000000004", "chk-x", "chk-00000000011", "lost+found/chk-0000000012", "chk-+000000005"]
    {
        fs::create_dir_all(dir.path().join(folder)).unwrap();
        fs::write(dir.path().join(folder).join("x"), "not ours").unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), "not even text").unwrap();
        fs::write(dir.path().join("chk-0000000003").join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    }
    let found = store.manifests().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1.as_ref().unwrap(), &expected);
    store.retain(1).await.unwrap();
    for file in ["README", "chk-0000000003/notes.txt", "chk-x/x", "lost+found/chk-0000000012/x"] {
        assert!(dir.path().join(file).exists(), "{file}");
    }
}

#[tokio::test]
async fn a_damaged_manifest_is_named() {
    let (dir, store) = directory();
    complete(&store, 1).await;
    complete(&store, 2).await;
    let file = dir.path().join("chk-0000000002/manifest");
    let text = fs::read_to_string(&file).unwrap().replace("byte 17", "byte 18");
    fs::write(&file, text).unwrap();
    let found = store.manifests().await.unwrap();
    assert_eq!(found.iter().map(|(id, m)| (id.0, m.is_ok())).collect::<Vec<_>>(), [(2, false), (1, true)]);
    let error = found[0].1.as_ref().unwrap_err().to_string();
    assert!(error.contains("chk-0000000002/manifest") && error.contains("checksum"), "{error}");
}

#[tokio::test]
async fn a_folder_under_another_number_is_damaged() {
    let (dir, store) = directory();
    complete(&store, 1).await;
    fs::create_dir(dir.path().join("chk-0000000005")).unwrap();
    let manifest = dir.path().join("chk-0000000001/manifest");
    fs::copy(manifest, dir.path().join("chk-0000000005/manifest")).unwrap();
    let found = store.manifests().await.unwrap();
    assert!(found[0].1.is_err() && found[1].1.is_ok());
}

#[cfg(unix)]
#[tokio::test]
async fn a_manifest_that_cannot_be_read_now_is_not_skipped() {
    let (dir, store) = directory();
    complete(&store, 1).await;
    // A link to itself cannot be read by anyone, not even by root.
    fs::create_dir(dir.path().join("chk-0000000002")).unwrap();
    std::os::unix::fs::symlink("manifest", dir.path().join("chk-0000000002/manifest")).unwrap();
    let error = store.manifests().await.unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }) && error.restartable(), "{error}");
    assert!(store.retain(1).await.is_err());
}
