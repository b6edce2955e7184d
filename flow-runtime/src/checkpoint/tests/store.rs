use crate::checkpoint::{Restore, RestoreRequest, Store, tests::*};

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
        store.retain(1).await.unwrap();
        assert_eq!(store.manifests().await.unwrap().len(), 1);
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
        store.require_empty().await.unwrap_err();
        store.retain(3).await.unwrap();
    })
    .await
    .unwrap();
}
