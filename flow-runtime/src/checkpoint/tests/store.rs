use std::fs;

use crate::checkpoint::{CheckpointError, Compression, Restore, RestoreRequest, Store, tests::*};

#[tokio::test]
async fn a_completed_checkpoint_is_found_and_read() {
    let (_dir, local) = directory();
    for store in [local, Store::in_memory()] {
        complete(&store, 1).await;
        let second = complete(&store, 2).await;
        let mut restore = Restore::new(RestoreRequest::Newest, false);
        let resumed = restore.resume(&store, |_| Ok(())).await.unwrap();
        let restored = resumed.restored.unwrap();
        assert_eq!(restored.manifest, second);
        assert_eq!(restored.states("words.sum"), ["state 2"]);
        assert_eq!(restored.handles("out"), [(0, CheckpointId(2), Bytes::from("handle 2"))]);
        assert_eq!(restored.splits("lines")[0].data, [0, 17, 255]);
        assert!(restored.states("out").is_empty() && restored.handles("words.sum").is_empty());
    }
}

/// The runtime spawns all of these.
#[tokio::test]
async fn everything_can_be_spawned() {
    let store = Store::in_memory();
    tokio::spawn(async move {
        complete(&store, 1).await;
        let mut restore = Restore::new(RestoreRequest::Newest, false);
        let resumed = restore.resume(&store, |m| m.check("job", &m.operators, 128, false)).await.unwrap();
        assert_eq!(resumed.last, CheckpointId(1));
        assert!(matches!(store.require_empty().await, Err(CheckpointError::NotEmpty { .. })));
        store.retain(3).await.unwrap();
    })
    .await
    .unwrap();
}

#[test]
fn a_store_works_without_a_runtime() {
    use futures_util::FutureExt;
    let (_dir, store) = directory();
    let written = store.put_part(CheckpointId(1), "a", Bytes::from_static(b"x"));
    let part = written.now_or_never().unwrap().unwrap();
    assert_eq!(store.get_part(&part).now_or_never().unwrap().unwrap(), "x");
    store.put_manifest(&Manifest::new("job", CheckpointId(1), 1)).now_or_never().unwrap().unwrap();
}

#[tokio::test]
async fn parts_of_one_name_are_files_of_their_own() {
    let (dir, store) = directory();
    let again = Store::open(dir.path().to_str().unwrap()).unwrap();
    let mut parts = Vec::new();
    for (n, store) in [&store, &store.clone(), &again].into_iter().enumerate() {
        let content = Bytes::from(vec![u8::try_from(n).unwrap(); 3]);
        parts.push((store.put_part(CheckpointId(1), "sum-0", content.clone()).await.unwrap(), content));
    }
    for (part, content) in parts {
        assert_eq!(store.get_part(&part).await.unwrap(), content);
    }
}

#[tokio::test]
async fn a_name_may_hold_anything() {
    let (_dir, local) = directory();
    for store in [local, Store::in_memory()] {
        let long = "x".repeat(500);
        for name in ["", "a/b", "..", "../../etc", "a#1", "ü 漢", "a\0b", "C:\\x", "%2F", &long] {
            let part = store.put_part(CheckpointId(1), name, Bytes::from_static(b"x")).await.unwrap();
            assert!(part.path.starts_with("chk-0000000001/"), "{}", part.path);
            assert_eq!(store.get_part(&part).await.unwrap(), "x", "{name}");
        }
        assert!(store.manifests().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn large_parts_go_up_in_pieces() {
    let store = Store::in_memory();
    let content =
        Bytes::from((0..(65 << 20)).map(|i: u32| i.to_le_bytes()[i as usize % 4]).collect::<Vec<_>>());
    let part = store.put_part(CheckpointId(1), "large", content.clone()).await.unwrap();
    assert!(store.get_part(&part).await.unwrap() == content);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_an_io_error() {
    let (dir, store) = directory();
    fs::write(dir.path().join("chk-0000000001"), "in the way").unwrap();
    let error = store.put_part(CheckpointId(1), "a", Bytes::new()).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot write `chk-0000000001/a."), "{error}");
    assert!(error.restartable());
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_directory_can_be_read_and_says_so_when_written() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, store) = directory();
    complete(&store, 1).await;
    let mode = |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    // Permissions do not bind root.
    let binding = fs::write(dir.path().join("probe"), "").is_err();
    let store = Store::open(dir.path().to_str().unwrap()).unwrap();
    assert_eq!(store.manifests().await.unwrap().len(), 1);
    if binding {
        let error = store.put_part(CheckpointId(2), "a", Bytes::new()).await.unwrap_err();
        assert!(error.to_string().contains("permissions") && error.restartable(), "{error}");
    }
    mode(0o755);
}

#[tokio::test]
async fn compressed_parts_come_back_as_they_were() {
    let (dir, store) = directory();
    for payload in [Bytes::new(), Bytes::from_static(b"x"), Bytes::from("the same again, ".repeat(10_000))] {
        for compression in [Compression::None, Compression::Zstd] {
            let written = store.put_compressed(CheckpointId(1), "sum-0", payload.clone(), compression);
            let part = written.await.unwrap();
            assert_eq!(store.get_part(&part).await.unwrap(), payload);
            let on_disk = std::fs::metadata(dir.path().join(&part.path)).unwrap().len();
            assert_eq!(on_disk, part.bytes + 24, "the size is what lies there");
            if payload.len() > 1000 {
                assert_eq!(part.bytes < 1000, compression == Compression::Zstd);
            }
        }
    }
}
